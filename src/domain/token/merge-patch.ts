/** JSON Merge Patch (RFC 7396) that does not modify its arguments. */
import { isObject } from '../json/json.js'

/**
 * The target with the patch applied: the members of an object patch replace those of the target, null removes one, and
 * a patch that is not an object replaces the whole. Both are JSON values; the result may share parts with them.
 */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  const merged = new Map(isObject(target) ? Object.entries(target) : [])
  for (const [name, member] of Object.entries(patch)) {
    if (member === null) merged.delete(name)
    else merged.set(name, mergePatch(merged.get(name), member))
  }
  return Object.fromEntries(merged)
}
