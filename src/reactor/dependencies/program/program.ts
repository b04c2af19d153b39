/**
 * The program of a separate process: bundles one package with esbuild, or compiles TypeScript. Reads a job from
 * standard input, and writes the result to descriptor 3. Uses the esbuild of the project, or else the esbuild that is
 * installed with Coffer.
 */
import { readFileSync, writeSync } from 'node:fs'
import { builtinModules, createRequire } from 'node:module'
import type { BuildOptions, BuildResult, Platform, TransformOptions, TransformResult } from 'esbuild'
import { preparePackage } from '../../guest/source.js'

const INPUT = 0
const OUTPUT = 3
const ENTRY = 'coffer-entry.js'
/**
 * esbuild marks a file with this prefix if the `browser` field of a package replaces the file with nothing. The file
 * need not exist.
 */
const DISABLED = '(disabled):'

/** These packages work only if they are bundled for the platform `node`. */
const FOR_NODE: readonly string[] = ['jsonwebtoken']

interface Esbuild {
  version: string
  build(options: BuildOptions): Promise<BuildResult>
  transform(text: string, options: TransformOptions): Promise<TransformResult>
}

type Job = { project: string } & ({ name: string } | { file: string; text: string })

async function main(): Promise<void> {
  const job = JSON.parse(readFileSync(INPUT, 'utf8')) as Job
  const work = async () =>
    'name' in job ? bundle(job.project, job.name) : compile(job.project, job.file, job.text)
  const result = await work().catch((error: unknown) => ({ failure: describe(error) }))
  const bytes = Buffer.from(JSON.stringify(result))
  for (let at = 0; at < bytes.length; ) at += writeSync(OUTPUT, bytes, at)
}

async function bundle(project: string, name: string): Promise<object> {
  const esbuild = findEsbuild(project)
  const platforms: Platform[] = FOR_NODE.includes(name) ? ['node', 'browser'] : ['browser', 'node']
  let first: unknown
  for (const platform of platforms) {
    try {
      const { outputFiles, metafile } = await esbuild.build(optionsOf(project, name, platform))
      const inputs = Object.keys(metafile!.inputs).filter(
        (path) => path !== ENTRY && !path.startsWith('<') && !path.startsWith(DISABLED),
      )
      return { text: preparePackage(outputFiles![0]!.text), inputs }
    } catch (error) {
      first ??= error
    }
  }
  throw first
}

async function compile(project: string, file: string, text: string): Promise<object> {
  const esbuild = findEsbuild(project)
  try {
    const { code, map } = await esbuild.transform(text, {
      loader: file.endsWith('x') ? 'tsx' : 'ts',
      sourcefile: file,
      format: 'cjs',
      platform: 'node',
      target: 'es2022',
      sourcemap: 'external',
      sourcesContent: false,
      // SES refuses import(). With this option, esbuild replaces import() by require.
      supported: { 'dynamic-import': false },
      // An empty tsconfig is given, because a tsconfig of the project could lead to other files.
      tsconfigRaw: '{}',
      logLevel: 'silent',
    })
    return { text: code, map }
  } catch (error) {
    const { errors } = error as { errors?: EsbuildError[] }
    if (errors === undefined || errors.length === 0) throw error
    return { faults: errors.map(toFault) }
  }
}

interface EsbuildError {
  text: string
  /** `column`: in bytes of UTF-8, from 0. */
  location: { line: number; column: number; lineText: string } | null
}

function toFault({ text, location }: EsbuildError): object {
  if (location === null) return { line: 1, column: 1, message: text }
  const { line, column, lineText } = location
  const before = Buffer.from(lineText).subarray(0, column).toString()
  return { line, column: before.length + 1, message: text }
}

/** @throws Error if no esbuild is installed, or if the installed version is too old */
function findEsbuild(project: string): Esbuild {
  let esbuild: Esbuild | undefined
  for (const from of [`${project}/package.json`, import.meta.url]) {
    try {
      esbuild ??= createRequire(from)('esbuild') as Esbuild
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'MODULE_NOT_FOUND') throw error
    }
  }
  if (esbuild === undefined)
    throw new Error('esbuild is not installed. Run npm install --save-dev esbuild in the project.')
  const [, major, minor] = /^(\d+)\.(\d+)\./.exec(String(esbuild.version)) ?? []
  if (major === undefined || (major === '0' && Number(minor) < 19))
    throw new Error('esbuild is too old. Run npm install --save-dev esbuild@latest in the project.')
  return esbuild
}

function optionsOf(project: string, name: string, platform: Platform): BuildOptions {
  return {
    stdin: {
      contents: `module.exports = require(${JSON.stringify(name)})`,
      resolveDir: project,
      sourcefile: ENTRY,
    },
    absWorkingDir: project,
    bundle: true,
    format: 'cjs',
    platform,
    conditions: ['require'],
    target: 'es2022',
    minify: true,
    legalComments: 'none',
    external: builtinModules.flatMap((each) => [each, `node:${each}`]),
    // SES refuses import(). With this option, esbuild replaces import() by require.
    supported: { 'dynamic-import': false },
    // An empty tsconfig is given, because a tsconfig of the project could lead to other files.
    tsconfigRaw: '{}',
    write: false,
    metafile: true,
    logLevel: 'silent',
  }
}

function describe(error: unknown): string {
  const { errors, message } = error as { errors?: { text?: unknown }[]; message?: unknown }
  return String(errors?.[0]?.text ?? message ?? error)
}

await main()
