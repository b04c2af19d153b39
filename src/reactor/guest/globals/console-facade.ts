/** `console` for reactor code: formats lines in the guest and sends them to the host, which limits them. */
import { type DescribeError, format, MOST_CHARACTERS } from '../inspect.js'

/** The depth to which objects are shown. */
const DEPTH = 4

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
    return format(values, DEPTH, describeError)
      .slice(0, MOST_CHARACTERS)
      .replaceAll(/\p{Cs}/gu, '\uFFFD')
  } catch {
    // A value can make formatting fail: a proxy that throws, a text that overflows the stack.
    return '[not printable]'
  }
}
