/**
 * Measures contenders in turn and prints the results. The first contender is the floor, with which the others are
 * compared. Each round measures all contenders, so a busy machine affects both a figure and its floor.
 */
import type { ChildProcess } from 'node:child_process'

export interface Contender {
  name: string
  /** Does the work once and returns its cost. All contenders use the same unit, and a lower cost is better. */
  measure(): Promise<number> | number
}

export interface Measured {
  name: string
  values: readonly number[]
}

/** Runs all contenders in turn for `rounds` rounds. An additional first round does not count. */
export async function measureInTurn(rounds: number, contenders: readonly Contender[]): Promise<Measured[]> {
  const values = contenders.map((): number[] => [])
  for (let round = -1; round < rounds; round++) {
    for (const [at, { measure }] of contenders.entries()) {
      const value = await measure()
      if (round >= 0) values[at]!.push(value)
    }
  }
  return contenders.map(({ name }, at) => ({ name, values: values[at]! }))
}

/** Returns `value` divided by `floor` for each round. */
export function ratiosOf(value: Measured, floor: Measured): number[] {
  return value.values.map((each, round) => each / floor.values[round]!)
}

/**
 * Returns the CPU time of one run of `work` in µs. Other work on the machine affects CPU time less than elapsed time.
 */
export async function timeCpu(runs: number, work: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  for (let run = 0; run < runs; run++) {
    const result = work()
    // Only a promise is awaited, because `await` on another value would add to the measured time.
    if (result instanceof Promise) await result
  }
  const { user, system } = process.cpuUsage(before)
  return (user + system) / runs
}

/** Resolves with the first message of `child`. @throws Error if the child ends before it sends a message */
export function firstMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    child.once('message', (message) => resolve(message as T))
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`${child.spawnargs.join(' ')} ended with ${code}.`)))
  })
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle)] ?? 0)) / 2
}

/** Formats values as `1.23 (1.10–1.40)`: the median, the lowest and the highest value. */
export function formatSpread(values: readonly number[]): string {
  return `${median(values).toFixed(2)} (${Math.min(...values).toFixed(2)}–${Math.max(...values).toFixed(2)})`
}

/** Prints times. The first contender is the floor of the other contenders. */
export function printTimes(title: string, unit: string, measured: readonly Measured[]): void {
  const floor = measured[0]!
  printTable(title, [
    ['', unit, 'x floor (from–to)'],
    ...measured.map((each) => [
      each.name,
      formatNumber(median(each.values)),
      formatSpread(ratiosOf(each, floor)),
    ]),
  ])
}

/** Prints `count` divided by each time in seconds. The first contender is the floor of the other contenders. */
export function printRates(title: string, count: number, measured: readonly Measured[]): void {
  const floor = measured[0]!
  printTable(title, [
    ['', 'a second', 'x floor (from–to)'],
    ...measured.map((each) => [
      each.name,
      String(Math.round(count / median(each.values))),
      formatSpread(ratiosOf(floor, each)),
    ]),
  ])
}

/** Prints one ratio to a figure that is not the floor. */
export function printRatio(title: string, ratios: readonly number[]): void {
  console.log(`${title}: ${formatSpread(ratios)}`)
}

export function printTable(title: string, rows: readonly (readonly string[])[]): void {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)))
  console.log(`\n${title}`)
  for (const row of rows) {
    const [name = '', ...cells] = row
    console.log(
      `  ${name.padEnd(widths[0]!)}  ${cells.map((cell, at) => cell.padStart(widths[at + 1]!)).join('  ')}`,
    )
  }
}

function formatNumber(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toFixed(value >= 10 ? 1 : 2)
}
