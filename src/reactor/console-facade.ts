/** `console` for reactor code: formats in the guest, sends lines to the host, which counts them. */
import { formatWithOptions } from 'node:util'

/** A longer line is cut; the host counts what is left. */
const MOST_CHARACTERS = 16_384

const LEVELS: Readonly<Record<string, string>> = {
  debug: 'debug',
  trace: 'debug',
  info: 'info',
  log: 'log',
  dir: 'log',
  table: 'log',
  warn: 'warn',
  error: 'error',
}

/** Custom inspection stays off: it would hand the code Node's own `inspect`. */
export const INSPECT_OPTIONS = {
  customInspect: false,
  depth: 4,
  maxArrayLength: 100,
  maxStringLength: MOST_CHARACTERS,
  breakLength: 110,
} as const

/** What an error is in a line; the realm hides its class and stack from Node's own formatting. */
export type DescribeError = (error: Error) => string

export function createConsole(
  send: (level: string, text: string) => void,
  describeError: DescribeError,
): Record<string, unknown> {
  const formatLine = (values: readonly unknown[]) => formatValues(values, describeError)
  const methods = Object.entries(LEVELS).map(([name, level]) => [
    name,
    (...values: unknown[]) => send(level, formatLine(values)),
  ])
  const assert = (isTrue?: unknown, ...values: unknown[]) => {
    if (!isTrue) send('error', formatLine(['Assertion failed', ...values]))
  }
  const nothing = Object.fromEntries(
    ['group', 'groupCollapsed', 'groupEnd', 'time', 'timeLog', 'timeEnd', 'count', 'clear'].map((name) => [
      name,
      () => undefined,
    ]),
  )
  return { ...nothing, ...Object.fromEntries(methods), assert }
}

function formatValues(values: readonly unknown[], describeError: DescribeError): string {
  try {
    const shown = values.map((value) => (value instanceof Error ? describeError(value) : value))
    // The text of an error is no format.
    if (values[0] instanceof Error) shown.unshift('%s')
    return formatWithOptions(INSPECT_OPTIONS, ...shown)
      .slice(0, MOST_CHARACTERS)
      .replaceAll(/\p{Cs}/gu, '\uFFFD')
  } catch {
    // A value may refuse to be looked at: a proxy that throws, a getter that overflows the stack.
    return '[not printable]'
  }
}
