/** `coffer reactor logs`: prints the last runs of a reactor, and follows new ones. */
import { pause } from '../context/pause.js'
import type { Steps, Task } from '../context/task.js'
import { displayLines } from '../output/display.js'
import { write } from '../output/terminal.js'

const SHOWN = 20
const STORED = 100
const POLL_MS = 1000

interface Run extends Record<string, unknown> {
  id: string
  console: { level: string; text: string }[]
  detail?: string
  errors?: Record<string, string[]>
  stack?: string
}

/** With `--follow` also prints new runs until interrupted. */
export const logs: Steps = createLogs((signal) => pause(POLL_MS, signal))

export function createLogs(wait: (signal: AbortSignal) => Promise<unknown>): Steps {
  return {
    run: async (task) => {
      const { signal } = task.context
      const read = async (number?: number) =>
        (await task.ask(number === undefined ? { ...task.input } : { ...task.input, number })) as Run[]
      const isFollowed = task.options.follow === true
      const first = await read(isFollowed ? STORED : undefined)
      const shown = isFollowed ? first.slice(first.length - Number(task.input.number ?? SHOWN)) : first
      await printRuns(task, shown)
      let seen = new Set(first.map((run) => run.id))
      while (isFollowed && !signal.aborted) {
        await wait(signal)
        if (signal.aborted) return
        const runs = await read(STORED)
        const added = runs.filter((run) => !seen.has(run.id))
        if (!(await printRuns(task, added))) return
        seen = new Set(runs.map((run) => run.id))
      }
    },
  }
}

/** Resolves to false if the reader closed the stream. */
async function printRuns({ context, options, format, print }: Task, runs: Run[]): Promise<boolean> {
  const { terminal } = context
  const isFollowed = options.follow === true
  if (isFollowed && runs.length === 0) return true
  if (format !== 'table' || runs.length === 0) {
    await print(runs, isFollowed && format === 'json' ? 'ndjson' : format)
    return true
  }
  await terminal.letGo?.()
  for (const run of runs) if (!(await write(terminal.stdout, describeRun(run)))) return false
  return true
}

function describeRun({ console, detail, errors = {}, stack, ...run }: Run): string {
  const head = `${run.created_at}  ${run.outcome} ${run.status}  ${run.duration_ms} ms  ${run.memory_mib} MiB`
  const messages = Object.entries(errors).flatMap(([path, texts]) => texts.map((text) => `${path}: ${text}`))
  const lines = [
    ...console.map(({ level, text }) => `${level}: ${text}`),
    ...(detail === undefined ? [] : [detail]),
    ...messages,
    ...(stack === undefined ? [] : [stack]),
  ]
  return [head, ...lines.map((line) => displayLines(line).replaceAll(/^/gm, '    ')), ''].join('\n')
}
