import { omitUndefined } from '../../domain/omit-undefined.js'
import type { ResultOf } from '../../operations/all.js'
import { displayLines } from '../output/display.js'
import { FOLLOW, follow, printRows } from '../output/follow.js'
import type { Hooks, Presentations } from '../task.js'

const USUAL_PAGE = 20
const STORED_RUNS = 100

type Run = ResultOf<'reactor logs'>[number]

const runs: Hooks = {
  run: async (task) => {
    const { ask, input, options, format, print } = task
    const read = async (number?: number) => (await ask({ ...input, ...omitUndefined({ number }) })) as Run[]
    const isFollowing = options.follow === true
    const first = await read(isFollowing ? STORED_RUNS : undefined)
    if (!isFollowing) {
      if (format !== 'table' || first.length === 0) return print(first)
      return void (await printRows(task, first, formatRun))
    }
    let seen = new Set(first.map(({ id }) => id))
    const readNew = async () => {
      const stored = await read(STORED_RUNS)
      const added = stored.filter(({ id }) => !seen.has(id))
      seen = new Set(stored.map(({ id }) => id))
      return added
    }
    const shown = first.length - Number(input.number ?? USUAL_PAGE)
    await follow(task, first.slice(Math.max(0, shown)), formatRun, readNew)
  },
}

function formatRun({ console, detail, errors = {}, stack, ...run }: Run): string {
  const head = `${run.created_at}  ${run.outcome} ${run.status}  ${run.duration_ms} ms  ${run.memory_mib} MiB`
  const lines = [
    ...console.map(({ level, text }) => `${level}: ${text}`),
    detail,
    ...Object.entries(errors).flatMap(([path, texts]) => texts.map((text) => `${path}: ${text}`)),
    stack,
  ].filter((line) => line !== undefined)
  return [head, ...lines.map((line) => displayLines(line).replaceAll(/^/gm, '    ')), ''].join('\n')
}

export const presentations: Presentations = {
  'reactor logs': {
    options: [FOLLOW],
    empty: 'The reactor has not run yet.',
    hooks: runs,
  },
}
