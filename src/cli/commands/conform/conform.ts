/** `coffer conform` runs the safe cases of `fixtures/operations` on a server and prints where its answers differ. */
import { randomUUID } from 'node:crypto'
import { askServer } from '../../../client/conform/ask-server.js'
import { describeRemaining, runCases } from '../../../client/conform/run-cases.js'
import { pause } from '../../../client/pause.js'
import { createSocketFetch } from '../../../client/socket-fetch.js'
import { omitUndefined } from '../../../domain/omit-undefined.js'
import { CofferError, usage } from '../../../errors.js'
import type { RoutedOperation } from '../../../framework/registry.js'
import { DEFAULT_PREFIX } from '../../../http/server.js'
import { loadOperation } from '../../../operations/load.js'
import type { CommandContext } from '../../context.js'
import { countOf, display, toJson } from '../../output/display.js'
import { chooseFormat, printNotice, printResult, printWarning } from '../../output/output.js'
import { createProgress } from '../../output/progress.js'
import { write } from '../../output/terminal.js'
import type { TerminalCommand } from '../../task.js'
import { readKey, requireUrl } from '../pull.js'
import { readPackedCases } from './read-cases.js'
import { describeRun, planCases, type Report } from './report.js'

const STOPPING =
  'Stopping: deleting the records of this run… Press Ctrl-C again to end the run at once. The records then remain.'
const DEFAULT_TIMEOUT_MS = 30_000

export const conform: TerminalCommand['run'] = async (context, _, options) => {
  const plan = planCases(readPackedCases(), typeof options.only === 'string' ? options.only : undefined)
  if (plan.cases.length + plan.leftOut.length === 0)
    throw usage(`There are no cases "${options.only}". Give the name of a file in fixtures/operations.`)
  if (options.dryRun === true) {
    const { leftOut } = plan
    const cases = plan.cases.map(({ title }) => ({ case: title, state: 'runs' }))
    const others = leftOut.map(({ case: title, reason }) => ({ case: title, state: 'left out', reason }))
    const rows = [...cases, ...others]
    await printResult(context.terminal, rows, {
      format: chooseFormat(context.terminal, context.config.output),
    })
    return printNotice(context.terminal, `Nothing was sent. ${countOf(cases.length, 'case')} would run.`)
  }
  const url = requireUrl(context)
  const report = describeRun(plan, await run(context, url, await readKey(context, url, options), plan), {
    server: new URL(url).origin,
    date: new Date(context.clock()).toISOString().slice(0, 10),
  })
  await print(context, report, options.markdown === true)
  const { terminal } = context
  if (report.remaining.length > 0) await printWarning(terminal, describeRemaining(report.remaining))
  if (report.differences.length > 0)
    throw new CofferError(
      'server_differs',
      `Answers of the server that differ from the cases: ${report.differences.length}.`,
    )
}

async function run(
  context: CommandContext,
  url: string,
  key: string,
  { cases }: ReturnType<typeof planCases>,
) {
  const { config, clock, hangUp, terminal, input } = context
  const signal = AbortSignal.any([context.signal, hangUp])
  const { ca: file, insecure, prefix = DEFAULT_PREFIX, timeoutMs = DEFAULT_TIMEOUT_MS } = config
  const ca = file === undefined ? undefined : await input.readFile(file, '--ca')
  const sockets = context.fetch ? undefined : createSocketFetch({ ...omitUndefined({ ca }), insecure })
  const fetch = context.fetch ?? sockets!.fetch
  const server = { url, prefix, fetch, timeoutMs, wait: pause }
  const progress = createProgress(terminal, { label: 'Running cases', total: cases.length }, clock)
  // After this call, an interrupt first deletes the records of the run.
  context.handlesSignals()
  const tell = () => void printNotice(terminal, STOPPING)
  signal.addEventListener('abort', tell, { once: true })
  try {
    const effects = {
      ask: (request: Parameters<typeof askServer>[1]) => askServer(server, request),
      find: async (name: string) => (await loadOperation(name)) as unknown as RoutedOperation | undefined,
      clock,
      randomUuid: randomUUID,
      signal,
      show: (count: number) => progress.show(count),
    }
    return await runCases(effects, cases, key)
  } finally {
    signal.removeEventListener('abort', tell)
    await progress.finish()
    await sockets?.close()
  }
}

async function print(
  { terminal, config }: CommandContext,
  report: Report,
  isMarkdown: boolean,
): Promise<void> {
  const format = chooseFormat(terminal, config.output)
  if (isMarkdown) {
    const { formatMarkdown } = await import('./markdown.js')
    await write(terminal.stdout, formatMarkdown(report))
    return
  }
  if (format !== 'table') {
    await write(terminal.stdout, `${toJson(report, 2)}\n`)
    return
  }
  await write(terminal.stdout, `${display(report.server)}, ${report.date}\n\n`)
  await printResult(terminal, report.areas, { format, columns: ['area', 'calls', 'equal', 'different'] })
  if (report.differences.length > 0) {
    await write(terminal.stdout, '\n')
    const columns = ['area', 'case', 'step', 'operation', 'difference']
    await printResult(terminal, report.differences, { format, columns, wraps: ['difference'] as never })
  }
  await write(terminal.stdout, '\n')
  const columns = ['left_out', 'cases']
  const reasons = report.reasons.map(({ reason, cases }) => ({ left_out: reason, cases }))
  await printResult(terminal, reasons, { format, columns })
}
