import { CofferError } from '../../errors.js'
import type { AnyOperation } from '../../framework/operation.js'
import type { Schema } from '../../framework/schema.js'
import { toFlag } from './flags.js'

/** If an error is about a date, adds that the flag also takes a duration. Returns any other error unchanged. */
export function explainDurations(error: unknown, { input }: Pick<AnyOperation, 'input'>): unknown {
  if (!(error instanceof CofferError) || error.errors === undefined) return error
  const { code, status, traceId, errors } = error
  const properties = input.properties ?? {}
  if (!Object.keys(errors).some((path) => properties[path]?.duration)) return error
  let { message } = error
  const explained = Object.entries(errors).map(([path, texts]) => {
    const advice = describeDuration(path, properties[path])
    if (message === `${path}: ${texts[0]}`) message += advice
    return [path, texts.map((text) => text + advice)]
  })
  const details = { errors: Object.fromEntries(explained), status, cause: error }
  return new CofferError(code, message, traceId === undefined ? details : { ...details, traceId })
}

function describeDuration(property: string, schema: Schema | undefined): string {
  if (schema?.duration === undefined) return ''
  const { name } = toFlag(property, schema)
  return `; ${name} also takes a duration ${schema.duration === 'ahead' ? 'from' : 'before'} now: 2h`
}
