/**
 * Reports the results of the tests: one line for each file, every failure in full, and the totals at the end. The
 * command `node --test` loads this reporter with the option `--test-reporter`. The reporter reads the events of the
 * files in order.
 */
import { relative } from 'node:path'
import type { TestEvent } from 'node:test/reporters'

/**
 * If a file fails, the report shows at most this many characters of the standard error of the file, from its beginning.
 */
const MAX_STDERR = 20_000

const TEST_FILE = /\.test$/

type Passed = Extract<TestEvent, { type: 'test:pass' }>['data']
type Failed = Extract<TestEvent, { type: 'test:fail' }>['data']

interface FileReport {
  readonly file: string
  passed: number
  readonly failures: string[]
}

export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const stderr = new Map<string, string>()
  const path: string[] = []
  const failed: string[] = []
  const skipped: string[] = []
  const totals = new Map<string, number>()
  /**
   * Results of subtests. The events of subtests arrive before the event of the test that contains the subtests, and
   * only the later event names the file.
   */
  let pending = { passed: 0, failures: [] as string[] }
  let current: FileReport | undefined

  function finish(): string {
    if (current === undefined) return ''
    const { file, passed, failures } = current
    const text = stderr.get(file) ?? ''
    stderr.delete(file)
    if (failures.length === 0) return `ok ${file} (${passed})\n`
    failed.push(...failures.map((failure) => `${file}: ${failure.split('\n', 1)[0]}`))
    return `NOT OK ${file} (${passed} passed, ${failures.length} failed)\n${failures.join('\n')}\n${text}`
  }

  for await (const { type, data } of events) {
    if (type === 'test:stderr') {
      const file = nameFile(data.file)
      stderr.set(file, `${stderr.get(file) ?? ''}${data.message}`.slice(0, MAX_STDERR))
    } else if (type === 'test:start') {
      path.splice(data.nesting, path.length, data.name)
    } else if (type === 'test:pass' || type === 'test:fail') {
      if (type === 'test:pass' && data.skip !== undefined) skipped.push(describeSkip(data))
      else if (type === 'test:pass' && isLeaf(data)) pending.passed++
      else if (type === 'test:fail' && isCause(data)) pending.failures.push(describe(path, data))
      if (data.nesting > 0) continue
      const file = nameFile(data.file)
      // If a support file declares a test, the report counts the test for the test file of the previous event.
      if (current === undefined || (TEST_FILE.test(file) && file !== current.file)) {
        yield finish()
        current = { file, passed: 0, failures: [] }
      }
      current.passed += pending.passed
      current.failures.push(...pending.failures)
      pending = { passed: 0, failures: [] }
    } else if (type === 'test:diagnostic') {
      const [name = '', count] = data.message.split(' ')
      totals.set(name, Number(count))
    }
  }
  yield finish()
  const count = (name: string): number => totals.get(name) ?? 0
  if (skipped.length > 0) yield `\nSkipped:\n${skipped.map((line) => `  ${line}\n`).join('')}`
  if (failed.length > 0) yield `\nFailed:\n${failed.map((line) => `  ${line}\n`).join('')}`
  yield `${count('pass')} passed, ${count('fail') + count('cancelled')} failed, ${count('skipped')} skipped\n`
}

/** Returns a name such as `test/cli/run.test`, whether the event names the source file or the built file. */
function nameFile(file: string | undefined): string {
  return relative(process.cwd(), file ?? '')
    .replace(/^dist\//, '')
    .replace(/\.[jt]s$/, '')
}

function isLeaf(data: Passed): boolean {
  return data.details.type !== 'suite'
}

/**
 * Returns false for a test that failed only because its subtests failed, because the report names the failed subtests
 * themselves.
 */
function isCause(data: Failed): boolean {
  const { error } = data.details
  return (error as { failureType?: string }).failureType !== 'subtestsFailed'
}

function describeSkip({ file, name, skip }: Passed): string {
  return `${nameFile(file)}: ${name}${typeof skip === 'string' && skip !== '' ? ` (${skip})` : ''}`
}

function describe(path: readonly string[], data: Failed): string {
  const { error } = data.details
  const place = data.line === undefined ? '' : ` (line ${data.line})`
  const { message, stack = '' } = (error.cause instanceof Error ? error.cause : error) as Error
  const text = stack.includes(message) ? stack : `${message}${describeExit(error)}\n${stack}`
  return `${[...path.slice(0, data.nesting), data.name].join(' > ')}${place}\n${text}`
}

/** Only the failure of a whole file has an exit code or a signal: the file's process ended, and no test says why. */
function describeExit(error: Error): string {
  const { exitCode, signal } = error as { exitCode?: number; signal?: string | null }
  if (signal) return `: the process ended by ${signal}`
  return exitCode === undefined ? '' : `: the process ended with exit code ${exitCode}`
}
