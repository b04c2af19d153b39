import { CofferError, interrupted, usage } from '../../errors.js'
import type { Content } from '../../framework/content.js'
import type { CommandContext, Options } from '../context.js'
import { listFlags, readFlag } from '../input/flags.js'
import { readTexts } from '../input/gather.js'
import { createProgress } from '../output/progress.js'
import { isTerminal } from '../output/terminal.js'
import type { Hooks, Presentations } from '../task.js'

/** The progress of smaller files is not shown. */
const SHOWN_BYTES = 1024 * 1024
/** Only text is printed on a terminal, because other content could change the state of the terminal. */
const TEXT = /^(?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml)\b)/

/** With `--from`, the file is read while it is stored. */
const createFromFile: Hooks = {
  gather: async (context, _, { from, ...options }) => {
    if (from === undefined) return undefined
    if (options.document !== undefined) throw usage('Give --from or --document, not both.')
    const { chunks, size } = await context.input.openStream(String(from), '--from')
    const document = showProgress(context, chunks, 'Storing bytes', size)
    return { ...(await readOwnFlags(context, options)), document }
  },
}

async function readOwnFlags({ registry, input }: CommandContext, options: Options) {
  const read: Record<string, unknown> = {}
  for (const flag of listFlags(registry.find('document create')!)) {
    const given = options[flag.key] as readonly string[] | undefined
    if (given !== undefined) read[flag.property] = readFlag(flag, await readTexts(input, flag, given))
  }
  return read
}

const writeData: Hooks = {
  run: async ({ context, input, options, ask, withOpenVault, notice }) => {
    const path = String(options.to ?? '-')
    // Loads `export-target.js` only here, because every command loads this file.
    const { openExportTarget } = await import('../bulk/export-target.js')
    const target = await openExportTarget(context, path)
    context.handlesSignals()
    let count = 0
    try {
      await withOpenVault(async () => {
        const content = (await ask()) as Content
        if (path === '-' && isTerminal(context.terminal.stdout) && !TEXT.test(content.type))
          throw usage(
            `The content is ${content.type}, which a terminal cannot show. Name a file: coffer document data ${input.id} --to FILE`,
          )
        const pieces = path === '-' ? content : showProgress(context, content, 'Writing bytes', content.size)
        for await (const bytes of pieces) {
          if (context.signal.aborted) throw interrupted()
          if (!(await target.putBytes(bytes))) return
          count += bytes.length
        }
        if (content.size !== undefined && count !== content.size)
          throw new CofferError('unavailable', 'The content that has arrived is not complete.')
      })
    } catch (error) {
      await target.discard()
      throw error
    }
    await target.complete()
    if (path !== '-') await notice(`Wrote ${count} ${count === 1 ? 'byte' : 'bytes'} to ${path}.`)
  },
}

async function* showProgress(
  { terminal, clock }: CommandContext,
  pieces: AsyncIterable<Uint8Array>,
  label: string,
  total: number | undefined,
): AsyncGenerator<Uint8Array> {
  const progress = createProgress(terminal, { label, ...(total !== undefined && { total }) }, clock)
  let done = 0
  try {
    for await (const piece of pieces) {
      yield piece
      done += piece.length
      if (done >= SHOWN_BYTES) await progress.show(done)
    }
  } finally {
    if (done >= SHOWN_BYTES) await progress.finish()
  }
}

export const presentations: Presentations = {
  'document create': {
    options: [['--from <file>', 'a file with the content; - reads standard input']],
    hooks: createFromFile,
  },
  'document data': {
    options: [['--to <file>', 'a new file for the content, with mode 0600']],
    hooks: writeData,
  },
}
