import { parseDuration } from '../../domain/dates.js'
import { invalid } from '../../errors.js'
import { CONTROL_PATH, owner } from '../../framework/declaration.js'

const LONGEST_WAIT_MS = 60_000

/** These operations need a vault in memory, so their examples start a server with a vault in memory. */
const NEEDS_MEMORY = /^(reset|snapshot|fork|clock)/

/** `route`: the method, and the path without the prefix of the control plane. */
export function on<const Name extends string>(name: Name, route: string, example = '') {
  const [method, path] = route.split(' ')
  return {
    name: `control ${name}`,
    route: `${method} ${CONTROL_PATH}${path}`,
    access: owner,
    examples: [toExample(name, example)],
  } as const
}

function toExample(name: string, args: string): string {
  const command = `coffer control ${name} ${args}`.trimEnd()
  const before = name === 'snapshot restore' || name === 'snapshot delete' ? SNAPSHOT : ''
  return NEEDS_MEMORY.test(name) ? `coffer serve --ephemeral --run '${before}${command}'` : command
}

const SNAPSHOT = 'coffer control snapshot create with-cards && '

export function readTimeout({ timeout }: { timeout?: string | undefined }): number {
  return Math.min(LONGEST_WAIT_MS, readDuration('timeout', timeout ?? '2s'))
}

export function readDuration(property: string, text: string): number {
  const [, digits] = /^(\d{1,6})ms$/.exec(text) ?? []
  const ms = digits === undefined ? parseDuration(text) : Number(digits)
  if (ms === undefined) throw invalid(property, 'must be a duration such as 300ms, 90s, 15m, 72h, 30d or 2w')
  return ms
}
