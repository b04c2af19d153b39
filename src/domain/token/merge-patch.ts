/**
 * JSON Merge Patch (RFC 7386, the same as RFC 7396), without touching what it is given. It knows nothing of tokens.
 */
import { isObject } from '../json/json.js'

/**
 * The target with the patch applied: members of an object patch replace, null removes, anything that is not an object
 * replaces the whole. Both are JSON values; the result may share parts with them.
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
