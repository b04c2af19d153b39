/**
 * The build compiles the validators, so that commands start without ajv. Error messages never contain values of the
 * input.
 */
import type { ErrorObject } from 'ajv'
import { isFull, refuseErrors } from '../domain/property-errors.js'
import { suggestName } from '../domain/text/nearest.js'
import { CofferError, type PropertyErrors } from '../errors.js'
import findValidator from './validators.js'

export function validateInput({ name }: { name: string }, input: Record<string, unknown>): void {
  const validate = findValidator(name)
  if (validate === undefined) throw new CofferError('internal', `No validator was built for "${name}".`)
  if (validate(input)) return
  refuseErrors(describeFailures(validate.errors ?? [], input))
}

export function describeFailures(failures: readonly ErrorObject[], input: unknown): PropertyErrors {
  const errors: PropertyErrors = Object.create(null)
  for (const failure of failures) {
    if (isFull(errors)) break
    const { path, value } = locate(failure, input)
    errors[path] ??= []
    errors[path].push(MESSAGES[failure.keyword]?.(failure.params, value) ?? 'is not valid')
  }
  return { ...errors }
}

/** Returns `/rules/0/container` as `rules[0].container`. Adds the name of a missing or unknown property. */
function locate({ instancePath, params }: ErrorObject, input: unknown) {
  const named: unknown = params.missingProperty ?? params.additionalProperty
  const parts = instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  if (typeof named === 'string') parts.push(named)
  let path = ''
  let place = input
  for (const part of parts) {
    // The input shows whether a number in the path is an index or a name.
    path += Array.isArray(place) ? `[${part}]` : path === '' ? part : `.${part}`
    place = (place as Record<string, unknown> | null | undefined)?.[part]
  }
  return { path, value: place }
}

const MESSAGES: Record<string, (params: Record<string, unknown>, value: unknown) => string> = {
  required: () => 'is required',
  additionalProperties: () => 'is not known here',
  type: ({ type }) => `must be ${[type].flat().map(withArticle).join(' or ')}`,
  enum: ({ allowedValues }, value) => {
    const names = (allowedValues as unknown[]).map(String)
    return `must be one of ${names.join(', ')}${typeof value === 'string' ? suggestName(value, names) : ''}`
  },
  minLength: ({ limit }) => `must have at least ${limit} ${limit === 1 ? 'character' : 'characters'}`,
  maxLength: ({ limit }) => `must have at most ${limit} characters`,
  pattern: () => 'must be one line without control characters',
  minimum: ({ limit }) => `must be at least ${limit}`,
  maximum: ({ limit }) => `must be at most ${limit}`,
  maxItems: ({ limit }) => `must have at most ${limit} items`,
  minProperties: ({ limit }) => `must have at least ${limit} ${limit === 1 ? 'entry' : 'entries'}`,
  maxProperties: ({ limit }) => `must have at most ${limit} ${limit === 1 ? 'entry' : 'entries'}`,
  format: ({ format }) => `must be a ${String(format).toUpperCase()}`,
}

function withArticle(type: unknown): string {
  if (type === 'null') return 'null'
  return /^[aeio]/.test(String(type)) ? `an ${type}` : `a ${type}`
}
