import type { FaultRule } from '../framework/ports/control.js'
import type { FieldProps, Fields } from './forms.js'

export const PRESETS: Record<string, FaultRule> = {
  '503, once': { kind: 'status', status: 503, times: 1 },
  '503, always': { kind: 'status', status: 503 },
  '429 with Retry-After': { kind: 'status', status: 429, retry_after: 2 },
  'Slow: 2 s': { kind: 'delay', delay_ms: 2000 },
  'Every third fails': { kind: 'status', status: 500, every: 3 },
  'Times out': { kind: 'delay', delay_ms: 60_000 },
  'Drop the connection before the work': { kind: 'drop', times: 1 },
  'Drop the connection after the work': { kind: 'lose', times: 1 },
  'Cut the answer': { kind: 'cut', times: 1 },
}

export const KINDS: Record<string, string> = {
  status: 'answers with a status',
  delay: 'waits',
  drop: 'drops the connection before the work',
  cut: 'cuts the answer',
  lose: 'drops the connection after the work',
  destination: 'the destination fails',
}

/** For example `Answers 503 to token create, the first 3 requests`. */
export function describeFault({ kind, ...rule }: FaultRule): string {
  const {
    status,
    delay_ms = 0,
    retry_after,
    bytes,
    destination,
    operation,
    method,
    path,
    times,
    every,
  } = rule
  const whose = [operation, method, path].filter(Boolean).join(' ') || 'any request'
  const conditions = Object.entries({ ...rule.headers, ...rule.body }).map(
    ([name, value]) => ` with ${name} = ${value}`,
  )
  const what: Record<FaultRule['kind'], string> = {
    status: `Answers ${status}${retry_after ? `, Retry-After ${retry_after} s,` : ''} to `,
    delay: `Waits ${delay_ms / 1000} s before `,
    drop: 'Drops the connection before the work of ',
    cut: `Cuts the answer${bytes === undefined ? '' : ` after ${bytes} bytes`} of `,
    lose: 'Drops the connection after the work of ',
    provision: `Builds the code${delay_ms ? ` for ${delay_ms / 1000} s` : ''}${rule.error_code ? `, then fails with ${rule.error_code},` : ''} of `,
    destination: `The destination answers ${JSON.stringify(destination)} to `,
  }
  const first = times && `the first ${times === 1 ? 'request' : `${times} requests`}`
  const how = first || (every ? `one of ${every} requests` : 'always')
  return `${what[kind]}${whose}${conditions.join('')}, ${how}`
}

/** The form field for the value of each kind of fault. If the field is empty, the form sends the placeholder. */
export const OWN_FIELDS: Record<string, FieldProps & { name: string; placeholder: string }> = {
  status: { name: 'status', label: 'Status', type: 'number', min: 400, max: 599, placeholder: '503' },
  delay: { name: 'delay_ms', label: 'Delay in ms', type: 'number', min: 1, placeholder: '1000' },
  destination: { name: 'destination', label: 'The destination answers', placeholder: 'timeout', size: 10 },
}
const COUNTS = ['status', 'delay_ms', 'times']

export function readRule({ kind = '', ...fields }: Fields): object {
  const { name = 'kind', placeholder = kind } = OWN_FIELDS[kind] ?? {}
  const given = Object.entries({ [name]: placeholder, ...fields })
  return {
    kind,
    ...Object.fromEntries(given.map(([each, text]) => [each, COUNTS.includes(each) ? Number(text) : text])),
  }
}
