/** `coffer reactor logs`: the last runs of a reactor, and those that come. */
import { setTimeout } from 'node:timers/promises'
import type { Steps, Task } from '../context/task.js'
import { displayLines } from '../output/display.js'
import { write } from '../output/terminal.js'

const SHOWN = 20
const KEPT = 100
const POLL_MS = 1000

interface Run extends Record<string, unknown> {
  id: string
  console: { level: string; text: string }[]
  detail?: string
  errors?: Record<string, string[]>
  stack?: string
}

/** Each run with what its code printed; with `--follow` also every one that comes. */
export const logs: Steps = createLogs(waitForNext)

export function createLogs(wait: (signal: AbortSignal) => Promise<unknown>): Steps {
  return {
    run: async (task) => {
      const { signal } = task.context
      const read = async (number?: number) =>
        (await task.ask(number === undefined ? { ...task.input } : { ...task.input, number })) as Run[]
      const isFollowed = task.options.follow === true
      const first = await read(isFollowed ? KEPT : undefined)
      const shown = isFollowed ? first.slice(first.length - Number(task.input.number ?? SHOWN)) : first
      await printRuns(task, shown)
      let seen = new Set(first.map((run) => run.id))
      while (isFollowed && !signal.aborted) {
        await wait(signal)
        if (signal.aborted) return
        const runs = await read(KEPT)
        if (
          !(await printRuns(
            task,
            runs.filter((run) => !seen.has(run.id)),
          ))
        )
          return
        seen = new Set(runs.map((run) => run.id))
      }
    },
  }
}

/** Resolves to whether anybody still reads. */
async function printRuns({ context, options, format, print }: Task, runs: Run[]): Promise<boolean> {
  const { terminal } = context
  const isStream = options.follow === true
  if (isStream && runs.length === 0) return true
  if (format !== 'table' || runs.length === 0) {
    await print(runs, isStream && format === 'json' ? 'ndjson' : format)
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

function waitForNext(signal: AbortSignal): Promise<unknown> {
  return setTimeout(POLL_MS, undefined, { signal }).catch(() => undefined)
}
