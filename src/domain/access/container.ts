import type { PropertyErrors } from '../../errors.js'
import { addError } from '../property-errors.js'

/** `MAX_CONTAINERS` and `MAX_PATHS` limit the number of index fields of a token. */
const MAX_CONTAINERS = 20
const MAX_PATHS = 100
const MAX_CONTAINER_LENGTH = 400

const PATH = /^\/(?:[A-Za-z0-9_-]+\/)*$/
const PATH_RULE =
  'must be a path that starts and ends with "/" and whose segments are letters, digits, "-" or "_", such as ' +
  `"/general/high/"; at most ${MAX_CONTAINER_LENGTH} characters`

export function isContainerPath(path: unknown): path is string {
  return typeof path === 'string' && path.length <= MAX_CONTAINER_LENGTH && PATH.test(path)
}

export function checkContainers(value: unknown, path: string, errors: PropertyErrors): string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_CONTAINERS) {
    addError(errors, path, `must have at least one and at most ${MAX_CONTAINERS} container paths`)
    return []
  }
  for (const [index, item] of value.entries())
    if (!isContainerPath(item)) addError(errors, `${path}[${index}]`, PATH_RULE)
  const containers = [...new Set(value.filter(isContainerPath))]
  // Each segment and its slash have at least two characters. Therefore shorter texts cannot exceed `MAX_PATHS`.
  if (containers.join('').length >= 2 * MAX_PATHS && ancestorsOf(containers).size > MAX_PATHS)
    addError(errors, path, `must have at most ${MAX_PATHS} containers, counting the containers above them`)
  return containers
}

/** `/a/b/` gives `/a/b/`, `/a/` and `/`. */
export function containerAncestors(path: string): string[] {
  const ancestors = [path]
  for (let above = path; above !== '/'; ) {
    above = above.slice(0, above.lastIndexOf('/', above.length - 2) + 1)
    ancestors.push(above)
  }
  return ancestors
}

export function ancestorsOf(containers: readonly string[]): Set<string> {
  return new Set(containers.flatMap(containerAncestors))
}

export function containerSet(containers: readonly string[]): string[] {
  return containers.length === 1 ? [...containers] : [...new Set(containers)].sort()
}

export function containerSetId(containers: readonly string[]): string {
  return JSON.stringify(containerSet(containers))
}
