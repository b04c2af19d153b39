/** A table of goals: the ratios that a part has measured, each with its verdict. */
import { formatSpread, median, printTable } from './figures.js'

export interface Goal {
  name: string
  /** Without `least` and `most` the figure has no verdict. */
  least?: number
  most?: number
  /**
   * One list of ratios for each size, or a single list if the size has no effect. Undefined if nothing was measured.
   */
  ratios: readonly (readonly number[] | undefined)[]
  /** Whether the figure of this size counts. Default: all of them. */
  decides?: (tokens: number) => boolean
}

export function printGoals(sizes: readonly number[], goals: readonly Goal[]): void {
  const blanks = sizes.slice(1).map(() => '')
  printTable(
    'Goals: ours as a ratio, median (from–to), by tokens; where size is no matter, in the first column',
    [
      ['', 'goal', ...(sizes.length > 0 ? sizes.map(String) : ['']), 'met'],
      ...goals.map((goal) => {
        const { least, most, ratios } = goal
        const cells = ratios.map((each) => (each === undefined ? '–' : formatSpread(each)))
        const wanted = least !== undefined ? `≥ ${least}` : most !== undefined ? `≤ ${most}` : '–'
        return [goal.name, wanted, ...cells, ...blanks.slice(cells.length - 1), judge(goal, sizes)]
      }),
    ],
  )
}

function judge(goal: Goal, sizes: readonly number[]) {
  const { least = 0, most = Infinity, ratios, decides = () => true } = goal
  if (goal.least === undefined && goal.most === undefined) return '–'
  const medians = ratios.flatMap((each, at) => (each && decides(sizes[at]!) ? [median(each)] : []))
  if (medians.length === 0) return '–'
  return medians.every((value) => value >= least && value <= most) ? 'yes' : 'NO'
}
