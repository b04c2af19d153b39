/** Finds a declared package in a project: its declaration, its installed version and the directory of its files. */
import { join, sep } from 'node:path'
import { isObject, tryJson } from '../../domain/json/json.js'
import type { DependencyErrorCode } from '../../domain/reactor/dependencies.js'

/** Results are undefined if a file is absent, unreadable or larger than `maxBytes`. */
export interface ProjectFiles {
  read(path: string, maxBytes: number): string | undefined
  realPath(path: string): string | undefined
  /** Returns a text that changes when the content of the file changes. */
  stamp(path: string): string | undefined
}

export interface Installed {
  /** The directory with `package.json` and `node_modules`. */
  project: string
  version: string
}

export interface Problem {
  code: DependencyErrorCode
  installed?: string
  reason: string
}

const MAX_MANIFEST_BYTES = 1024 * 1024
const MAX_VERSION_CHARACTERS = 200
const VERSION = /^\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?$/

export function findInstalled(
  files: ProjectFiles,
  projects: readonly string[],
  name: string,
): Installed | Problem {
  let problem: Problem | undefined
  for (const project of projects) {
    const found = findInProject(files, project, name)
    if ('version' in found) return found
    problem = problem === undefined || isUndeclared(problem) ? found : problem
  }
  return problem ?? UNDECLARED
}

const UNDECLARED: Problem = {
  code: 'dependency_not_found',
  reason: 'package.json of the project does not name it in dependencies or devDependencies.',
}

function isUndeclared({ reason }: Problem): boolean {
  return reason === UNDECLARED.reason
}

function findInProject(files: ProjectFiles, project: string, name: string): Installed | Problem {
  if (!isDeclared(readManifest(files, project), name)) return UNDECLARED
  const directory = join(project, 'node_modules', name)
  const manifest = readManifest(files, directory)
  if (manifest === undefined)
    return { code: 'dependency_not_found', reason: 'It is not installed. Run npm install in the project.' }
  if (!isInside(files, project, directory))
    return { code: 'dependency_not_supported', reason: 'Its files are outside of node_modules.' }
  const { version } = manifest
  if (typeof version !== 'string' || version.length > MAX_VERSION_CHARACTERS || !VERSION.test(version))
    return { code: 'dependency_not_supported', reason: 'Its package.json has no valid version.' }
  return { project, version }
}

export function readManifest(
  files: ProjectFiles,
  directory: string,
): Readonly<Record<string, unknown>> | undefined {
  const text = files.read(join(directory, 'package.json'), MAX_MANIFEST_BYTES)
  const manifest = text === undefined ? undefined : tryJson(text)
  return isObject(manifest) ? manifest : undefined
}

function isDeclared(manifest: Readonly<Record<string, unknown>> | undefined, name: string): boolean {
  return [manifest?.dependencies, manifest?.devDependencies].some(
    (names) => isObject(names) && Object.hasOwn(names, name) && typeof names[name] === 'string',
  )
}

export function isInside(files: ProjectFiles, project: string, path: string): boolean {
  const root = files.realPath(join(project, 'node_modules'))
  const real = files.realPath(path)
  return root !== undefined && real?.startsWith(root + sep) === true
}
