/** Reads the file of a reactor, and converts places in the compiled code to places in the file. */
import { SourceMap } from 'node:module'
import { dirname, resolve } from 'node:path'
import type { CodeFault } from '../../../domain/reactor/code-fault.js'
import { projectTools } from '../../../vault/app.js'
import type { CommandContext } from '../../context.js'

const TYPESCRIPT = /\.[cm]?tsx?$/i
/** In stack frames, the file name of the code is `reactor.js`. */
const FRAME = /\breactor\.js:(\d+):(\d+)/g
const LINE_BREAK = /\r\n|[\n\r\u2028\u2029]/

export interface Place {
  line: number
  column: number
}

export interface Source {
  /** The path that the user gave, or `standard input`. */
  path: string
  lines: readonly string[]
  /** The JavaScript to run. Empty if there are faults. */
  code: string
  faults: readonly CodeFault[]
  /** Converts a place in the code to the place in the file. */
  locate(place: Place): Place
}

/** @throws CofferError `usage`, `too_large`, `validation` */
export async function readSource({ input, cwd }: CommandContext, path: string): Promise<Source> {
  const text = await input.readFile(path, 'the file')
  const name = path === '-' ? 'standard input' : path
  const source = { path: name, lines: text.split(LINE_BREAK), faults: [], locate: (place: Place) => place }
  if (!TYPESCRIPT.test(path)) return { ...source, code: text.replace(/^\ufeff/, '') }
  const { compileTypeScript, findProjectOf } = await projectTools()
  const file = resolve(cwd, path)
  const compiled = await compileTypeScript(findProjectOf(file) ?? dirname(file), path, text)
  if ('faults' in compiled) return { ...source, code: '', faults: compiled.faults }
  return { ...source, code: compiled.text, locate: createLocator(compiled.map) }
}

function createLocator(text: string): Source['locate'] {
  const map = new SourceMap(JSON.parse(text))
  return (place) => {
    const found = map.findEntry(place.line - 1, place.column - 1)
    if (!('originalLine' in found)) return place
    return { line: found.originalLine + 1, column: found.originalColumn + 1 }
  }
}

/** In stack frames, replaces each place in the code by the place in the file. */
export function nameFile(text: string, { path, locate }: Source): string {
  return text.replaceAll(FRAME, (_, line: string, column: string) => {
    const place = locate({ line: Number(line), column: Number(column) })
    return `${path}:${place.line}:${place.column}`
  })
}

export function findPlace(stack: string, { locate }: Source): Place | undefined {
  const [frame] = stack.matchAll(FRAME)
  return frame && locate({ line: Number(frame[1]), column: Number(frame[2]) })
}
