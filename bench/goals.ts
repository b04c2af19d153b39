/**
 * Prints a table of goals. Each row has the ratios that a part of the benchmark has measured, and says whether the
 * ratios meet the goal.
 */
import { formatSpread, median, printTable } from './figures.js'

export interface Goal {
  name: string
  /** If both `least` and `most` are missing, the figure has no goal. */
  least?: number
  most?: number
  /**
   * The measured ratios, with one list for each size, or a single list if the size has no effect. A list is undefined
   * if nothing was measured.
   */
  ratios: readonly (readonly number[] | undefined)[]
  /**
   * Returns whether the figure for `tokens` tokens counts towards the goal. By default, the figures for all sizes
   * count.
   */
  decides?: (tokens: number) => boolean
}

export function printGoals(sizes: readonly number[], goals: readonly Goal[]): void {
  const blanks = sizes.slice(1).map(() => '')
  printTable(
    'Goals: ratios of Coffer, median (from–to), by number of tokens. The first column has ratios that do not depend on it',
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
