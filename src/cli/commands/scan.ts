/** `coffer scan`: looks for values of tokens in files and pipes. What it prints never contains a value. */
import { readdirSync, statSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { CofferError, usage } from '../../errors.js'
import type { TokenView } from '../../operations/token/token-attributes.js'
import { countOf } from '../output/display.js'
import { printForRun, printWarning } from '../output/output.js'
import { createProgress } from '../output/progress.js'
import { walkPages } from '../pages.js'
import { runOperation } from '../run.js'
import type { Task, TerminalCommand } from '../task.js'

const PAGE = 100
/** A longer line is searched in pieces. */
const PIECE = 256 * 1024
const MOST_FINDINGS = 10_000
/** In bytes; a shorter value would be found everywhere. */
export const SHORTEST_VALUE = 6
/** A longer value is searched for by its first bytes only. */
const LONGEST_VALUE = 1024
/** The longest encoded value (`%5C%75%30…`), in bytes: pieces of a longer text overlap by this much. */
const OVERLAP = 18 * LONGEST_VALUE
/** Encodings within encodings. */
const MOST_DEPTH = 2

/** A number as people write it. */
const SEPARATED = /^\d(?:[ .-]?\d){7,}$/
const DIGITS = /\d(?:[ .-]?\d){7,}/g
const BASE64 = /[A-Za-z0-9+/_-]{8,}/g
const PERCENT = /%([\da-f]{2})/gi
const ESCAPED = /(?:\\u[\da-fA-F]{4}|\\["\\/bfnrt])+/g

/** @throws CofferError `conflict` if something is found, after printing it; `usage` if a file cannot be read */
export const scan: TerminalCommand['run'] = (context, paths, options) =>
  runOperation(
    context,
    context.registry.find('token list-after')!,
    [],
    { ...options, reveal: true },
    { run: (task) => scanAll(task, paths as string[]) },
  )

async function scanAll(task: Task, paths: readonly string[]): Promise<void> {
  const { context } = task
  const { terminal, clock, signal } = context
  const finder = new ValueFinder()
  await task.withOpenVault(async () => {
    for await (const { data } of walkPages(task, { size: PAGE }))
      for (const token of data as TokenView[]) finder.add(token.id, token.data)
  }, 'server')
  if (finder.omitted > 0)
    await task.notice(`Values of less than ${SHORTEST_VALUE} bytes, not looked for: ${finder.omitted}.`)
  const files = paths.flatMap((path) => listFiles(context.cwd, path))
  const progress = createProgress(terminal, { label: 'Scanning' }, clock)
  const findings: { id: string; file: string; line: number }[] = []
  let unread = 0
  for (const [done, file] of files.entries()) {
    try {
      const { chunks, close } = await context.input.openStream(file, 'the file')
      try {
        for await (const found of scanChunks(chunks, finder)) {
          if (signal.aborted || findings.length === MOST_FINDINGS) break
          findings.push({ ...found, file })
        }
      } finally {
        close()
      }
    } catch (error) {
      if (!(error instanceof CofferError)) throw error
      unread++
      await printWarning(terminal, error.message)
    }
    await progress.show(done + 1)
  }
  await progress.finish()
  const hints = { empty: 'No value of a token was found.' }
  await printForRun(context, findings, { columns: ['id', 'file', 'line'], hints })
  const isFull = findings.length === MOST_FINDINGS
  const places = isFull ? `${MOST_FINDINGS} or more places` : countOf(findings.length, 'place')
  if (findings.length > 0)
    throw new CofferError('conflict', `Values of tokens are in the clear in ${places}.`)
  if (unread > 0) throw usage(`Files that could not be read: ${unread}.`)
}

/** The file, or the files in a directory at any depth, by the path as it was given; links in it are not followed. */
function listFiles(cwd: string, path: string): string[] {
  const root = resolve(cwd, path)
  if (path === '-' || !statSync(root, { throwIfNoEntry: false })?.isDirectory()) return [path]
  return readdirSync(root, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(path, relative(root, join(entry.parentPath, entry.name))))
}

/** @internal Finds values by line, each token once in a line. */
export async function* scanChunks(
  chunks: AsyncIterable<Uint8Array>,
  finder: ValueFinder,
  { piece = PIECE, overlap = OVERLAP } = {},
): AsyncGenerator<{ id: string; line: number }> {
  let line = 1
  let rest = ''
  let seen = new Set<string>()
  const search = (text: string) => {
    const found = [...finder.find(text)].filter((id) => !seen.has(id))
    for (const id of found) seen.add(id)
    return found.map((id) => ({ id, line }))
  }
  for await (const chunk of chunks) {
    const lines = (rest + Buffer.from(chunk).toString('latin1')).split('\n')
    rest = lines.pop()!
    // Most text has no value in it, and is searched at once.
    const hasValue = lines.length > 0 && finder.find(lines.join('\n')).size > 0
    for (const each of lines) {
      if (hasValue) yield* search(each)
      line++
      seen = new Set()
    }
    if (rest.length < piece) continue
    yield* search(rest)
    rest = rest.slice(-overlap)
  }
  yield* search(rest)
}

interface Value {
  text: string
  ids: Set<string>
  /** The call of `find` that found it last, so that none looks for it again. */
  foundBy: number
}

/** Finds values as they are, or encoded. Text is `latin1`, so that any bytes can be searched. */
export class ValueFinder {
  /** The number of values that are too short to be looked for. */
  omitted = 0
  readonly #byText = new Map<string, Value>()
  /** The values by their first six bytes, and a bit for each three bytes that one begins with. */
  readonly #byStart = new Map<string, Value[]>()
  readonly #starts = new Uint8Array(1 << 21)
  #calls = 0

  add(id: string, data: unknown): void {
    if (typeof data === 'object' && data !== null)
      for (const inner of Object.values(data)) this.add(id, inner)
    if (typeof data !== 'string' && typeof data !== 'number') return
    const text = String(data)
    this.#addText(id, text)
    if (SEPARATED.test(text)) this.#addText(id, text.replaceAll(/\D/g, ''))
  }

  /** Returns the ids of the tokens with a value in `text`. A value in one line of it is found in all of it. */
  find(text: string): Set<string> {
    this.#calls++
    const found = new Set<string>()
    this.#search(text, found, MOST_DEPTH)
    return found
  }

  #addText(id: string, text: string): void {
    // The longest line identifies the value well enough.
    const lines = Buffer.from(text)
      .toString('latin1', 0, LONGEST_VALUE)
      .split(/[\r\n]+/)
    const line = lines.reduce((longest, each) => (each.length > longest.length ? each : longest))
    if (line.length < SHORTEST_VALUE) {
      this.omitted++
      return
    }
    const known = this.#byText.get(line)
    if (known !== undefined) return void known.ids.add(id)
    const value = { text: line, ids: new Set([id]), foundBy: 0 }
    this.#byText.set(line, value)
    const key = line.slice(0, SHORTEST_VALUE)
    const alike = this.#byStart.get(key) ?? []
    alike.push(value)
    this.#byStart.set(key, alike)
    const start = Buffer.from(key, 'latin1').readUIntBE(0, 3)
    this.#starts[start >> 3]! |= 1 << (start & 7)
  }

  #search(text: string, found: Set<string>, depth: number): void {
    let start = 0
    for (let at = -2; at + SHORTEST_VALUE <= text.length; at++) {
      start = ((start << 8) | text.charCodeAt(at + 2)) & 0xffffff
      if (at < 0 || (this.#starts[start >> 3]! & (1 << (start & 7))) === 0) continue
      for (const value of this.#byStart.get(text.slice(at, at + SHORTEST_VALUE)) ?? []) {
        if (value.foundBy === this.#calls || !text.startsWith(value.text, at)) continue
        value.foundBy = this.#calls
        for (const id of value.ids) found.add(id)
      }
    }
    if (depth > 0) for (const decoded of decodings(text)) this.#search(decoded, found, depth - 1)
  }
}

function* decodings(text: string): Generator<string> {
  for (const [run] of text.matchAll(DIGITS)) {
    const digits = run.replaceAll(/\D/g, '')
    if (digits !== run) yield digits
  }
  if (text.includes('%')) yield decodePercent(text)
  // Forms write a space as a plus.
  if (text.includes('+')) yield decodePercent(text.replaceAll('+', ' '))
  if (text.includes('\\'))
    yield text.replaceAll(ESCAPED, (run) => Buffer.from(JSON.parse(`"${run}"`) as string).toString('latin1'))
  // The encoded text may begin before the value does.
  for (const [run] of text.matchAll(BASE64))
    for (let first = 0; first < 4; first++) yield Buffer.from(run.slice(first), 'base64').toString('latin1')
}

function decodePercent(text: string): string {
  return text.replaceAll(PERCENT, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
}
