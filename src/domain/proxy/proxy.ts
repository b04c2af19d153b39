import type { PropertyErrors } from '../../errors.js'
import { addError, refuseErrors } from '../property-errors.js'
import { checkConfiguration } from '../reactor/reactor.js'
import { DIRECTIONS, readTransforms } from './transform.js'

const MAX_URL_CHARACTERS = 2000

type Given = Readonly<Record<string, unknown>>

/**
 * Checks what the schema cannot express. Values may have any type.
 * @throws CofferError `validation`
 */
export function checkProxy(given: Given): void {
  const errors: PropertyErrors = {}
  const { destination_url, configuration } = given
  if (typeof destination_url === 'string' && readDestination(destination_url) === undefined)
    addError(errors, 'destination_url', DESTINATION_RULE)
  checkConfiguration(configuration, errors)
  for (const direction of DIRECTIONS) {
    const reactor = `${direction}_reactor_id`
    const isTransformed = readTransforms(given, direction, errors).length > 0
    if (isTransformed && given[reactor]) addError(errors, reactor, 'cannot be given together with transforms')
  }
  refuseErrors(errors)
}

export const DESTINATION_RULE = `must be an http or https URL without user, query and fragment, of at most ${MAX_URL_CHARACTERS} characters`

export function readDestination(text: string, refused = /[?#\\]/): URL | undefined {
  if (text.length > MAX_URL_CHARACTERS || !/^https?:\/\/[\x21-\x7e]+$/i.test(text) || refused.test(text))
    return undefined
  const url = URL.canParse(text) ? new URL(text) : undefined
  return url === undefined || url.username !== '' || url.password !== '' ? undefined : url
}
