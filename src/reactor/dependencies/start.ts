import { spawn } from 'node:child_process'
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isObject, tryJson } from '../../domain/json/json.js'
import { MAX_LINKED_BYTES } from '../../domain/reactor/dependencies.js'
import { CofferError, usage } from '../../errors.js'
import type { Linker } from '../../framework/ports/linker.js'
import type { ReactorOptions } from '../../framework/ports/reactors.js'
import { describeThisNode } from '../confinement.js'
import { type ProjectFiles, readManifest } from './installed.js'
import { type Bundled, type LinkerEffects, ProjectLinker } from './linker.js'
import { linkBoth, ModulesLinker, NO_PACKAGES } from './without-project.js'

const BUNDLE_MS = 60_000
/** JSON can double the size of the text. The remaining bytes are for the list of files. */
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
 * Opens a project for the commands that prepare a deployment. `dependencies`: the names in `dependencies` of its
 * `package.json`.
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

/** Treats a file that cannot be read as absent. The linker then reports a finding about the package of the file. */
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

/** Runs the program that bundles. Resolves to its output, or to undefined if it failed or took too long. */
function runProgram(job: object, signal: AbortSignal): Promise<string | undefined> {
  return new Promise((resolve) => {
    // The process gets no variable of the server's environment. Its standard output is not read, because a plugin may
    // print there.
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
    // A program that ended early is reported by its exit code.
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
  return { failure: 'esbuild failed, was too slow, or gave too much.' }
}

/** Searches beside the bundled command line, and three levels above this compiled module. @throws CofferError `internal` */
function findProgram(): string {
  const found = ['linker.mjs', '../../../linker.mjs']
    .map((path) => fileURLToPath(new URL(path, import.meta.url)))
    .find((path) => existsSync(path))
  if (found === undefined)
    throw new CofferError('internal', 'The linker of packages was not built; run the build.')
  return found
}
