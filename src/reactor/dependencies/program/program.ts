/**
 * The program that bundles one package with esbuild, in a process of its own. It reads a job from standard input, and
 * writes the result to descriptor 3. It uses the esbuild of the project if there is one, and otherwise the esbuild
 * that is installed with Coffer.
 */
import { readFileSync, writeSync } from 'node:fs'
import { builtinModules, createRequire } from 'node:module'
import type { BuildOptions, BuildResult, Platform } from 'esbuild'
import { preparePackage } from '../../guest/source.js'

const INPUT = 0
const OUTPUT = 3
const ENTRY = 'coffer-entry.js'
/**
 * The prefix with which esbuild marks a file that the `browser` field of a package replaces with nothing. The file
 * need not exist.
 */
const DISABLED = '(disabled):'

/** Packages that do not work if they are bundled for the platform `browser`, and do work for the platform `node`. */
const FOR_NODE: readonly string[] = ['jsonwebtoken']

interface Esbuild {
  version: string
  build(options: BuildOptions): Promise<BuildResult>
}

async function main(): Promise<void> {
  const { project, name } = JSON.parse(readFileSync(INPUT, 'utf8')) as { project: string; name: string }
  const result = await bundle(project, name).catch((error: unknown) => ({ failure: describe(error) }))
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
    // A tsconfig of the project could lead to other files.
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
