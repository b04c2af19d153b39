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

export function createConsole(send: (level: string, text: string) => void): Record<string, unknown> {
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

function formatLine(values: readonly unknown[]): string {
  try {
    return formatWithOptions(INSPECT_OPTIONS, ...values)
      .slice(0, MOST_CHARACTERS)
      .replaceAll(/\p{Cs}/gu, '\uFFFD')
  } catch {
    // A value may refuse to be looked at: a proxy that throws, a getter that overflows the stack.
    return '[not printable]'
  }
}
