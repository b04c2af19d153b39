/** `coffer scan`: looks for values of tokens in files and pipes. What it prints never contains a value. */
import { type Dirent, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createValueFinder, OVERLAP, type ValueFinder } from '../../domain/value-finder.js'
import { CofferError } from '../../errors.js'
import type { CursorPage } from '../../framework/cursor.js'
import type { TokenView } from '../../operations/token/token-attributes.js'
import type { CommandContext } from '../context/context.js'
import type { Options, Task } from '../context/task.js'
import { printForRun, printWarning } from '../output/output.js'
import { createProgress } from '../output/progress.js'
import { runOperation } from '../run.js'

const PAGE = 100
/** A longer line is looked through in pieces. */
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
  const { terminal, clock, signal } = context
  const finder = createValueFinder()
  await task.together(() => readTokens(task, finder), 'server')
  const progress = createProgress(terminal, { label: 'Scanning' }, clock)
  const findings: Finding[] = []
  let files = 0
  let unread = 0
  for (const file of paths.flatMap((path) =>
    path === '-' ? [path] : listFiles(resolve(context.cwd, path), path),
  )) {
    try {
      for await (const finding of scanOne(context, file, finder)) {
        if (signal.aborted || findings.length === MOST_FINDINGS) break
        findings.push(finding)
      }
    } catch (error) {
      if (!(error instanceof CofferError)) throw error
      unread++
      await printWarning(terminal, error.message)
    }
    await progress.show(++files)
  }
  await progress.finish()
  await printForRun(context, findings, {
    columns: ['id', 'file', 'line'],
    known: ['id', 'file', 'line'],
    hints: { empty: 'No value of a token was found.' },
  })
  const more = findings.length === MOST_FINDINGS ? ' or more' : ''
  if (findings.length > 0)
    throw new CofferError(
      'conflict',
      `Values of tokens are in the clear in ${findings.length}${more} places.`,
    )
  if (unread > 0) throw new CofferError('usage', `Files that could not be read: ${unread}.`)
}

async function readTokens({ ask }: Task, finder: ValueFinder): Promise<void> {
  for (let start: string | undefined; ; ) {
    const place = start === undefined ? {} : { start }
    const { data, pagination } = (await ask({ size: PAGE, ...place })) as CursorPage<TokenView>
    for (const token of data) finder.add(token.id, token.data)
    start = pagination.next
    if (start === undefined) return
  }
}

/** The files in a directory, at any depth; links in it are not followed. `shown`: the path as it was given. */
function listFiles(path: string, shown: string): string[] {
  let entries: Dirent[]
  try {
    entries = readdirSync(path, { withFileTypes: true })
  } catch {
    // A file, or what will be told when it is opened.
    return [shown]
  }
  return entries.flatMap((entry) => {
    if (entry.isDirectory()) return listFiles(join(path, entry.name), join(shown, entry.name))
    return entry.isFile() ? [join(shown, entry.name)] : []
  })
}

async function* scanOne(
  { input }: CommandContext,
  file: string,
  finder: ValueFinder,
): AsyncGenerator<Finding> {
  const { chunks, close } = await input.openStream(file, 'the file')
  let line = 1
  let rest = ''
  const seen = new Set<string>()
  const look = (text: string): Finding[] => {
    const found = [...finder.find(text)].filter((id) => !seen.has(id))
    for (const id of found) seen.add(id)
    return found.map((id) => ({ id, file, line }))
  }
  try {
    for await (const chunk of chunks) {
      const lines = (rest + Buffer.from(chunk).toString('latin1')).split('\n')
      rest = lines.pop()!
      for (const text of lines) {
        yield* look(text)
        line++
        seen.clear()
      }
      if (rest.length < PIECE) continue
      yield* look(rest)
      rest = rest.slice(-OVERLAP)
    }
    yield* look(rest)
  } finally {
    await close()
  }
}
