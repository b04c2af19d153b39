/** `coffer reactor logs`: prints the last runs of a reactor, and follows new ones. */
import { omitUndefined } from '../../../domain/omit-undefined.js'
import type { ResultOf } from '../../../operations/all.js'
import { displayLines } from '../../output/display.js'
import type { Hooks } from '../../task.js'
import { follow, printRows } from '../follow.js'

const SHOWN = 20
const STORED = 100

type Run = ResultOf<'reactor logs'>[number]

export const logs: Hooks = {
  run: async (task) => {
    const read = async (number?: number) =>
      (await task.ask({ ...task.input, ...omitUndefined({ number }) })) as Run[]
    if (task.options.follow !== true) {
      const runs = await read()
      if (task.format !== 'table' || runs.length === 0) return task.print(runs)
      return void (await printRows(task, runs, describeRun))
    }
    const first = await read(STORED)
    let seen = new Set(first.map((run) => run.id))
    const readNew = async () => {
      const runs = await read(STORED)
      const added = runs.filter((run) => !seen.has(run.id))
      seen = new Set(runs.map((run) => run.id))
      return added
    }
    await follow(task, first.slice(first.length - Number(task.input.number ?? SHOWN)), describeRun, readNew)
  },
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
