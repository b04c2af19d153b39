/** Groups the results of a run by the areas of `fixtures/emulation.json`. */

import type { Case } from '../../../client/conform/cases.js'
import type { Difference, PlannedCase, Run } from '../../../client/conform/run-cases.js'
import { judgeCase, REASONS } from '../../../client/conform/safety.js'
import { readAreas } from '../../../http/openapi/emulation.js'
import { registry } from '../../../operations/all.js'

interface LeftOut {
  case: string
  reason: string
}

export interface Report {
  server: string
  /** The day in UTC. */
  date: string
  areas: { area: string; calls: number; equal: number; different: number }[]
  differences: (Difference & { area: string })[]
  reasons: { reason: string; cases: number }[]
  left_out: LeftOut[]
  remaining: Run['remaining']
}

/** `only`: the name of a file of cases, without `.json`. */
export function planCases(all: readonly Case[], only?: string) {
  const cases: PlannedCase[] = []
  const leftOut: LeftOut[] = []
  for (const each of all) {
    if (only !== undefined && !each.title.startsWith(`${only}: `)) continue
    const verdict = judgeCase(each)
    if (verdict.isSafe) cases.push({ ...each, own: verdict.own })
    else leftOut.push({ case: each.title, reason: REASONS[verdict.reason] })
  }
  return { cases, leftOut }
}

export function describeRun(
  plan: ReturnType<typeof planCases>,
  { compared, differences, leftOut: leftOutHere, remaining }: Run,
  about: Pick<Report, 'server' | 'date'>,
): Report {
  const here = leftOutHere.map((each) => ({ case: each.case, reason: REASONS[each.reason] }))
  const leftOut = [...plan.leftOut, ...here]
  const areaOf = findAreas()
  const located = differences.map((each) => ({ area: areaOf(each.operation), ...each }))
  const names = [...new Set([...readAreas().map(({ area }) => area), OTHER])]
  const areas = names.flatMap((area) => {
    const counts = [...compared].map(([operation, count]) => (areaOf(operation) === area ? count : 0))
    const calls = counts.reduce((sum, count) => sum + count, 0)
    const different = located.filter((each) => each.area === area).length
    return calls + different === 0 ? [] : [{ area, calls, equal: Math.max(0, calls - different), different }]
  })
  const counted = Object.values(REASONS).map((reason) => ({
    reason,
    cases: leftOut.filter((each) => each.reason === reason).length,
  }))
  const reasons = counted.filter(({ cases }) => cases > 0).sort((a, b) => b.cases - a.cases)
  return { ...about, areas, differences: located, reasons, left_out: leftOut, remaining }
}

const OTHER = 'Other calls'

function findAreas(): (operation: string) => string {
  const nameless = (call: string) => call.replaceAll(/\{[^}]*\}/g, '{}')
  const byCall = new Map<string, string>()
  for (const { area, in_2023 = [], since_2023 = [] } of readAreas())
    for (const part of [...in_2023, ...since_2023]) {
      const [, methods, path] = /^([A-Z ]+) (\/\S*)$/.exec(part) ?? []
      for (const method of methods?.split(' ') ?? []) byCall.set(nameless(`${method} ${path}`), area)
    }
  return (operation) => {
    const endpoint = registry.find(operation)?.endpoint
    return (endpoint && byCall.get(nameless(`${endpoint.method} ${endpoint.path}`))) ?? OTHER
  }
}
