/**
 * Fails the run if a folder of {@link AREAS} has too little coverage. `npm test` runs this program after the tests.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { AREAS } from './areas.js'

const MIN_PERCENT = 90

interface Counts {
  lines: { total: number; covered: number }
  branches: { total: number; covered: number }
}

const root = new URL('../../', import.meta.url).pathname
const summary: Record<string, Counts> = JSON.parse(
  readFileSync(`${root}dist/coverage/coverage-summary.json`, 'utf8'),
)
const faults = AREAS.flatMap(checkArea)
for (const fault of faults) console.error(`coverage: ${fault}`)
process.exitCode = faults.length === 0 ? 0 : 1

function checkArea(area: string): string[] {
  const prefix = `${root}src/${area}/`
  const files = readdirSync(prefix, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  )
  const measured = Object.entries(summary).filter(([path]) => path.startsWith(prefix))
  // A file with only types has no code, so no test loads it. Tests must load all files that contain code.
  const unseen = files.filter((name) => !(`${prefix}${name}` in summary) && hasCode(`${prefix}${name}`))
  const percents = (['lines', 'branches'] as const).map((kind) => {
    const total = measured.reduce((sum, [, counts]) => sum + counts[kind].total, 0)
    const covered = measured.reduce((sum, [, counts]) => sum + counts[kind].covered, 0)
    return { kind, percent: total === 0 ? 0 : Math.floor((1000 * covered) / total) / 10 }
  })
  console.log(`coverage: ${area} ${percents.map(({ kind, percent }) => `${percent} % ${kind}`).join(', ')}`)
  const low = percents.filter(({ percent }) => percent < MIN_PERCENT)
  return [
    ...unseen.map((name) => `src/${area}/${name} is loaded by no test`),
    ...low.map(({ kind, percent }) => `${area} has ${percent} % of its ${kind} covered, not ${MIN_PERCENT}`),
  ]
}

function hasCode(path: string): boolean {
  return /^(export )?(async )?(function|const|class)\b/m.test(readFileSync(path, 'utf8'))
}
