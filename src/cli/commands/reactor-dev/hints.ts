/**
 * Hints about what code must return. The required result depends on the image, and on whether the code is a transform.
 */
import { isConfigurable } from '../../../domain/reactor/runtime.js'
import type { ReactorRun } from '../../../framework/ports/reactors.js'

export interface CodePlace {
  image: string | undefined
  /** Which transform of a proxy the code is. Undefined for a reactor. */
  direction: 'request' | 'response' | undefined
}

/** Returns a hint if the code returned nothing that its caller receives. Returns undefined in all other cases. */
export function hintFor({ outcome }: ReactorRun, place: CodePlace): string | undefined {
  const isSilent =
    outcome.kind === 'result' &&
    [outcome.raw, outcome.tokenize, outcome.res].every((each) => each === undefined)
  const isRefused =
    outcome.kind === 'failure' &&
    place.direction !== undefined &&
    outcome.error.errors?.error?.some((text) => text.startsWith('a transform ')) === true
  if (place.direction === undefined ? !isSilent : !isRefused) return undefined
  const what =
    place.direction === undefined
      ? 'The function returned nothing that the caller receives.'
      : 'The function returned nothing that a transform may return.'
  return `${what} ${adviceFor(place)}`
}

function adviceFor({ image, direction }: CodePlace): string {
  const isNew = isConfigurable(image as Parameters<typeof isConfigurable>[0])
  if (direction === undefined)
    return isNew
      ? 'Return { res: { body: … } }. The statusCode and headers of res are optional.'
      : 'Return { raw: … } for a value, or { tokenize: … } for data that becomes tokens.'
  if (direction === 'response')
    return `Return ${isNew ? '{ res: { body, headers } }' : '{ body, headers }'} to replace the answer, or {} to leave it unchanged.`
  const replace = isNew ? '{ req: { body, headers } }' : '{ body, headers }'
  return `Return ${replace} to replace the request, { res: { statusCode, headers, body } } to answer it, or {} to leave it unchanged.`
}
