/** Where the bundled guest stands: beside the bundled command line, or two levels above this module as compiled. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CofferError } from '../errors.js'

/** @throws CofferError `internal` when the build did not make it. */
export function findGuestFile(): string {
  const places = ['guest.mjs', '../../guest.mjs'].map((place) =>
    fileURLToPath(new URL(place, import.meta.url)),
  )
  const found = places.find((place) => existsSync(place))
  if (found === undefined)
    throw new CofferError('internal', 'The guest of reactors was not built; run the build.')
  return found
}
