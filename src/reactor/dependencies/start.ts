import { spawn } from 'node:child_process'
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isObject, tryJson } from '../../domain/json/json.js'
import type { CodeFault } from '../../domain/reactor/code-fault.js'
import { MAX_LINKED_BYTES } from '../../domain/reactor/dependencies.js'
import { CofferError, usage } from '../../errors.js'
import type { Linker } from '../../framework/ports/linker.js'
import type { ReactorOptions } from '../../framework/ports/reactors.js'
import { describeThisNode } from '../confinement.js'
import { type ProjectFiles, readManifest } from './installed.js'
import { type Bundled, type LinkerEffects, ProjectLinker } from './linker.js'
import { linkBoth, ModulesLinker, NO_PACKAGES } from './without-project.js'

const BUNDLE_MS = 60_000
/** JSON can double the size of the text. The 8 MiB are for the list of source files. */
const MAX_RESULT_BYTES = 2 * MAX_LINKED_BYTES + 8 * 1024 * 1024

type Packages = Pick<ReactorOptions, 'dependencies' | 'modulesDirectory'>

/** @throws CofferError `usage` for a directory of `dependencies` without a `package.json` */
export function createLinker({ dependencies = [], modulesDirectory }: Packages): Linker {
  const modules =
    modulesDirectory === undefined ? undefined : new ModulesLinker(modulesDirectory, projectFiles)
  if (dependencies.length === 0) return modules ?? NO_PACKAGES
  const project = openProjects(dependencies)
  return modules === undefined ? project : linkBoth(project, modules)
}

/** @throws CofferError `usage` for a directory without a `package.json` */
export function openProjects(directories: readonly string[]): ProjectLinker {
  for (const directory of directories)
    if (readManifest(projectFiles, directory) === undefined)
      throw usage(
        `${directory} has no readable package.json. Give the directory of a project with node_modules.`,
      )
  return new ProjectLinker(directories, createEffects())
}

/**
 * For commands that prepare a deployment. `dependencies`: the names in `dependencies` of `package.json`.
 * @throws CofferError `usage`
 */
export function openProject(directory: string): { linker: Linker; dependencies: string[] } {
  const linker = openProjects([directory])
  const { dependencies } = readManifest(projectFiles, directory) ?? {}
  return { linker, dependencies: isObject(dependencies) ? Object.keys(dependencies) : [] }
}

export const projectFiles: ProjectFiles = {
  read: (path, maxBytes) =>
    attempt(() => {
      const stat = statSync(path)
      return stat.isFile() && stat.size <= maxBytes ? readFileSync(path, 'utf8') : undefined
    }),
  realPath: (path) => attempt(() => realpathSync(path)),
  stamp: (path) =>
    attempt(() => {
      const { mtimeMs, size, ino, ctimeMs } = statSync(path)
      return `${mtimeMs}/${ctimeMs}/${size}/${ino}`
    }),
}

/** A file that cannot be read counts as absent. The linker then reports a finding about the package of the file. */
function attempt<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch {
    return undefined
  }
}

function createEffects(): LinkerEffects {
  const ended = new AbortController()
  return {
    files: projectFiles,
    bundle: async ({ project, name }) => {
      const real = projectFiles.realPath(project) ?? project
      return readResult(await runProgram({ project: real, name }, ended.signal), real)
    },
    close: () => ended.abort(),
  }
}

/** JavaScript with a source map (JSON), or the reasons why the TypeScript does not compile. */
export type Compiled = { text: string; map: string } | { faults: CodeFault[] }

/**
 * Compiles TypeScript with the esbuild of the project, without checking types. `file`: the name in the source map.
 * @throws CofferError `usage` if esbuild is missing, too old or fails
 */
export async function compileTypeScript(project: string, file: string, text: string): Promise<Compiled> {
  const real = projectFiles.realPath(project) ?? project
  const output = await runProgram({ project: real, file, text }, new AbortController().signal)
  const result = output === undefined ? undefined : tryJson(output)
  if (isObject(result)) {
    const { faults, failure, text: compiled, map } = result
    if (typeof failure === 'string') throw usage(`TypeScript needs esbuild: ${failure} (project: ${project})`)
    if (isFaults(faults)) return { faults }
    if (typeof compiled === 'string' && typeof map === 'string') return { text: compiled, map }
  }
  throw usage(`${file} could not be compiled: esbuild failed, was too slow, or returned too much.`)
}

function isFaults(value: unknown): value is CodeFault[] {
  const isFault = (each: unknown) =>
    isObject(each) &&
    Number.isSafeInteger(each.line) &&
    Number.isSafeInteger(each.column) &&
    typeof each.message === 'string'
  return Array.isArray(value) && value.length > 0 && value.every(isFault)
}

export function findProjectOf(file: string): string | undefined {
  for (let at = dirname(file); ; at = dirname(at)) {
    if (readManifest(projectFiles, at) !== undefined) return at
    if (dirname(at) === at) return undefined
  }
}

/** Resolves to the output of `program.ts`, or to undefined if the program failed or took too long. */
function runProgram(job: object, signal: AbortSignal): Promise<string | undefined> {
  return new Promise((resolve) => {
    // The environment is empty, so that the process gets no secret of the server. The standard output is not read,
    // because a plugin of esbuild may print to it.
    const child = spawn(describeThisNode().path, ['--no-warnings', findProgram()], {
      env: {},
      stdio: ['pipe', 'ignore', 'ignore', 'pipe'],
      windowsHide: true,
      timeout: BUNDLE_MS,
      killSignal: 'SIGKILL',
      signal,
    })
    const chunks: Buffer[] = []
    let bytes = 0
    child.once('error', () => resolve(undefined))
    child.once('exit', (code) => {
      if (code !== 0) resolve(undefined)
    })
    const result = child.stdio[3]! as import('node:stream').Readable
    result.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > MAX_RESULT_BYTES) child.kill('SIGKILL')
      else chunks.push(chunk)
    })
    result.once('close', () => resolve(Buffer.concat(chunks).toString()))
    // If the program ends early, its exit code reports the problem.
    child.stdin!.on('error', () => undefined)
    child.stdin!.end(JSON.stringify(job))
  })
}

function readResult(output: string | undefined, project: string): Bundled {
  const result = output === undefined ? undefined : tryJson(output)
  if (isObject(result)) {
    const { failure, text, inputs } = result
    if (typeof failure === 'string') return { failure }
    const isList = Array.isArray(inputs) && inputs.every((each) => typeof each === 'string')
    if (typeof text === 'string' && isList) return { text, inputs: inputs.map((path) => join(project, path)) }
  }
  return { failure: 'esbuild failed, was too slow, or returned too much.' }
}

/**
 * Searches beside the bundled command line, and three levels above this compiled module.
 * @throws CofferError `internal`
 */
function findProgram(): string {
  const found = ['linker.mjs', '../../../linker.mjs']
    .map((path) => fileURLToPath(new URL(path, import.meta.url)))
    .find((path) => existsSync(path))
  if (found === undefined)
    throw new CofferError('internal', 'The linker of packages was not built; run the build.')
  return found
}
