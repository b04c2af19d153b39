/** The goals of the design as one table: what `http` has measured with its verdict, and for the rest where it is measured. */
import { formatSpread, median, printTable } from './figures.js'

export interface Goal {
  name: string
  /** Neither: a figure beside the goals, without a verdict. */
  least?: number
  most?: number
  /** One list of ratios a size, or a single one where size is no matter; undefined where nothing was measured. */
  ratios: readonly (readonly number[] | undefined)[]
  /** Whether the figure of this size counts; all of them do unless this says so. */
  decides?: (tokens: number) => boolean
}

const ELSEWHERE = [
  ['a get in the engine at 100,000 over 1,000 tokens, CPU', '≤ 1.15', 'bench vault'],
  ['memory holding 100,000 tokens, over holding none + 60 MB', '≤ 1.5', 'bench vault'],
  ['coffer token get; --version, over node -e 0', '≤ 2.0; ≤ 1.1', 'bench startup'],
  ['completion of a name, whole process', '≤ 150 ms', 'bench startup'],
  ['coffer token get after any number of commands over fresh', '≤ 1.05', 'no bench yet'],
  ['coffer token create over node -e 0', '≤ 2.3', 'no bench yet'],
  ['a run in a warm child over a message', '≤ 4', 'bench reactor'],
  ['react; by 50 clients', '≤ 0.8 ms; ≥ 3000/s', 'bench reactor'],
  ['first run in a new pool over an empty child', '≤ 2', 'bench reactor'],
  ['ephemeral in process; reset at 1,000 tokens', '≤ 50 ms; ≤ 5 ms', 'bench control'],
]

export function printGoals(sizes: readonly number[], goals: readonly Goal[]): void {
  const blanks = sizes.slice(1).map(() => '')
  printTable(
    'Goals: ours as a ratio, median (from–to), by tokens; where size is no matter, in the first column',
    [
      ['', 'goal', ...sizes.map(String), 'met'],
      ...goals.map((goal) => {
        const { least, most, ratios } = goal
        const cells = ratios.map((each) => (each === undefined ? '–' : formatSpread(each)))
        const wanted = least !== undefined ? `≥ ${least}` : most !== undefined ? `≤ ${most}` : '–'
        return [goal.name, wanted, ...cells, ...blanks.slice(cells.length - 1), judge(goal, sizes)]
      }),
      ...ELSEWHERE.map(([name = '', wanted = '', where = '']) => [name, wanted, where, ...blanks, '–']),
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
