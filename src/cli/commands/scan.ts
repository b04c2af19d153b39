/**
 * `coffer scan` looks for values of tokens in files and pipes. The output of `coffer scan` never contains a value of
 * a token.
 */
import { readdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { LONGEST_VALUE, SHORTEST_VALUE, ValueFinder } from '../../domain/text/value-finder.js'
import { CofferError, noRevealError, usage } from '../../errors.js'
import type { List } from '../../framework/page.js'
import type { TokenView } from '../../operations/token/token-attributes.js'
import type { Vault } from '../../vault/vault.js'
import type { CommandContext } from '../context.js'
import { countOf, formatCount } from '../output/display.js'
import { printForRun, printWarning } from '../output/output.js'
import { createProgress } from '../output/progress.js'
import { findMasked, walkPages } from '../pages.js'
import { runOnTokens } from '../run.js'
import { findTenantChoice } from '../target/vault.js'
import type { Task, TerminalCommand } from '../task.js'

const PAGE = 100
/** Longer lines are searched in pieces of this size. */
const PIECE = 256 * 1024
const MAX_FINDINGS = 10_000
/**
 * Pieces overlap by this number of bytes, so that no value is missed. The longest value has this length in its longest
 * encoding (`%5C%75%30…`).
 */
const OVERLAP = 18 * LONGEST_VALUE

/** @throws CofferError `values_found` if a value was found, `usage` if a file cannot be read */
export const scan: TerminalCommand['run'] = async (context, paths, options) => {
  if (context.config.noReveal) throw noRevealError('scan')
  await runOnTokens(context, { ...options, reveal: true }, (task) => scanAll(task, paths as string[]))
}

async function scanAll(task: Task, paths: readonly string[]): Promise<void> {
  const { context } = task
  const { terminal, clock, signal } = context
  const finder = new ValueFinder()
  await task.withOpenVault(async (vault) => {
    const readMasked = task.key === undefined ? await createMaskedReader(context, vault) : undefined
    // Tokens with masked data are skipped, because masked data contains no value to look for.
    const isMasked = task.key === undefined ? undefined : await findMasked(task)
    for await (const { data } of walkPages(task, { size: PAGE })) {
      const tokens = (data as TokenView[]).filter((token) => isMasked?.(token) !== true)
      const shown = await readMasked?.(tokens)
      for (const { id, data } of tokens) finder.add(id, data, shown?.get(id))
    }
  }, 'server')
  if (finder.omitted > 0)
    await task.notice(`Skipped ${countOf(finder.omitted, 'value')} shorter than ${SHORTEST_VALUE} bytes.`)
  const files = paths.flatMap((path) => listFiles(context.cwd, path))
  const progress = createProgress(terminal, { label: 'Scanning files', total: files.length }, clock)
  const findings: { id: string; file: string; line: number }[] = []
  let unread = 0
  for (const [done, file] of files.entries()) {
    try {
      const { chunks, close } = await context.input.openStream(file, 'the file')
      try {
        for await (const found of scanChunks(chunks, finder)) {
          if (signal.aborted || findings.length === MAX_FINDINGS) break
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
  const isFull = findings.length === MAX_FINDINGS
  const places = isFull ? `${formatCount(MAX_FINDINGS)} or more places` : countOf(findings.length, 'place')
  if (findings.length > 0)
    throw new CofferError('values_found', `Values of tokens are in plaintext in ${places}.`)
  if (unread > 0) throw usage(`Files that could not be read: ${unread}.`)
}

/**
 * The returned function acts as the owner and reads the masked data of tokens. Texts in masked data are not secret, so
 * a scan does not report these texts.
 */
async function createMaskedReader(context: CommandContext, vault: Vault) {
  const as = { reveal: false, tenant: await findTenantChoice(context) }
  return async (tokens: readonly TokenView[]) => {
    const input = { id: tokens.map(({ id }) => id), size: PAGE }
    const { result } = await vault.ask({ operation: 'token list', input, as })
    const masked = (result as List<TokenView>).data
    return new Map(masked.map(({ id, data, bank }) => [id, [data, bank?.routing_number]]))
  }
}

/** Lists a file, or all files below a directory except links. Each returned path begins with `path` as it was given. */
function listFiles(cwd: string, path: string): string[] {
  const root = resolve(cwd, path)
  if (path === '-' || !statSync(root, { throwIfNoEntry: false })?.isDirectory()) return [path]
  // A recursive `readdirSync` is not used, because it follows links since Node 22.
  return readdirSync(root, { withFileTypes: true }).flatMap((entry) => {
    const inside = join(path, entry.name)
    return entry.isDirectory() ? listFiles(cwd, inside) : entry.isFile() ? [inside] : []
  })
}

/** @internal Reports a token at most once for each line. */
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
    // All lines are searched together first, because most text contains no value.
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
