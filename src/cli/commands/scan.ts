/** `coffer scan`: looks for values of tokens in files and pipes. What it prints never contains a value. */
import { accessSync, constants, readdirSync, statSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { LONGEST_VALUE, OVERLAP, SHORTEST_VALUE, ValueFinder } from '../../domain/text/value-finder.js'
import { CofferError, usage } from '../../errors.js'
import type { TokenView } from '../../operations/token/token-attributes.js'
import type { CommandContext } from '../context.js'
import { countOf } from '../output/display.js'
import { printForRun, printWarning } from '../output/output.js'
import { createProgress } from '../output/progress.js'
import { walkPages } from '../pages.js'
import { runOperation } from '../run.js'
import type { Options, Task } from '../task.js'

const PAGE = 100
/** A longer line is searched in pieces. */
const PIECE = 256 * 1024
const MOST_FINDINGS = 10_000

interface Finding {
  /** Of the token. */
  id: string
  file: string
  line: number
}

/** @throws CofferError `conflict` if something is found, after printing it; `usage` if a file cannot be read */
export async function scan(
  context: CommandContext,
  paths: readonly string[],
  options: Options,
): Promise<void> {
  const read = context.registry.find('token list-after')!
  await runOperation(context, read, [], { ...options, reveal: true }, { run: (task) => scanAll(task, paths) })
}

async function scanAll(task: Task, paths: readonly string[]): Promise<void> {
  const { context } = task
  const { terminal, clock, cwd } = context
  const finder = new ValueFinder()
  let unread = 0
  const tellUnread = async (error: unknown) => {
    if (!(error instanceof CofferError)) throw error
    unread++
    await printWarning(terminal, error.message)
  }
  const named: string[] = []
  for (const path of paths) await requireReadable(context, path).then(() => named.push(path), tellUnread)
  // Every token that is read is logged, so none is read if there is nothing to search.
  if (named.length > 0) await task.withOpenVault(() => readTokens(task, finder), 'server')
  const progress = createProgress(terminal, { label: 'Scanning' }, clock)
  const findings: Finding[] = []
  const files = named.flatMap((path) => (path === '-' ? [path] : listFiles(resolve(cwd, path), path)))
  for (const [done, file] of files.entries()) {
    await scanFile(context, file, finder, findings).catch(tellUnread)
    await progress.show(done + 1)
  }
  await progress.finish()
  await printForRun(context, findings, {
    columns: ['id', 'file', 'line'],
    known: ['id', 'file', 'line'],
    hints: { empty: 'No value of a token was found.' },
  })
  const isFull = findings.length === MOST_FINDINGS
  const places = isFull ? `${MOST_FINDINGS} or more places` : countOf(findings.length, 'place')
  if (findings.length > 0)
    throw new CofferError('conflict', `Values of tokens are in the clear in ${places}.`)
  if (unread > 0) throw usage(`Files that could not be read: ${unread}.`)
}

async function readTokens(task: Task, finder: ValueFinder): Promise<void> {
  for await (const { data } of walkPages(task, { size: PAGE }))
    for (const token of data as TokenView[]) finder.add(token.id, token.data)
  const { short, ends } = finder.omitted
  if (short > 0) await task.notice(`Values of less than ${SHORTEST_VALUE} bytes, not looked for: ${short}.`)
  if (ends > 0) await task.notice(`Values looked for by their first ${LONGEST_VALUE} bytes alone: ${ends}.`)
}

async function scanFile(
  { input, signal }: CommandContext,
  file: string,
  finder: ValueFinder,
  findings: Finding[],
): Promise<void> {
  const { chunks, close } = await input.openStream(file, 'the file')
  try {
    for await (const found of scanChunks(chunks, finder)) {
      if (signal.aborted || findings.length === MOST_FINDINGS) break
      findings.push({ ...found, file })
    }
  } finally {
    await close()
  }
}

/** Opens nothing that can be read, because a pipe is read once. @throws CofferError `usage` */
async function requireReadable({ cwd, input }: CommandContext, path: string): Promise<void> {
  if (path === '-') return
  try {
    accessSync(resolve(cwd, path), constants.R_OK)
  } catch {
    const { close } = await input.openStream(path, 'the file')
    await close()
  }
}

/** The files in a directory, at any depth; links in it are not followed. `shown`: the path as it was given. */
function listFiles(path: string, shown: string): string[] {
  // A path that does not exist is reported when it is opened.
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return [shown]
  return readdirSync(path, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(shown, relative(path, join(entry.parentPath, entry.name))))
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
