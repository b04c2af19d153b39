import { CofferError } from '../../errors.js'
import type { AnyOperation } from '../../framework/operation.js'
import type { Schema } from '../../framework/schema.js'

const ADVICE = {
  ahead: 'or a duration from now such as 2h',
  ago: 'or a duration before now such as 2h',
} as const

/** An error of a date says that the command takes a duration too, which requests over HTTP do not. Others are as they are. */
export function explainDurations(error: unknown, { input }: Pick<AnyOperation, 'input'>): unknown {
  if (!(error instanceof CofferError) || error.errors === undefined) return error
  const { code, status, traceId, errors } = error
  const adviceOf = (path: string): string | undefined => {
    const { duration } = (input.properties?.[path] ?? {}) as Schema
    return duration && ADVICE[duration]
  }
  if (!Object.keys(errors).some(adviceOf)) return error
  let { message } = error
  const explained = Object.entries(errors).map(([path, texts]) => {
    const advice = adviceOf(path)
    if (advice === undefined) return [path, texts]
    const [first = ''] = texts
    if (message === `${path}: ${first}`) message = `${message}, ${advice}`
    return [path, texts.map((text) => `${text}, ${advice}`)]
  })
  const details = { errors: Object.fromEntries(explained), status, cause: error }
  return new CofferError(code, message, traceId === undefined ? details : { ...details, traceId })
}
