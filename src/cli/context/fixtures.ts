/** Data that comes with the package. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CofferError } from '../../errors.js'

/** Beside the folder of the bundled command line, and beside that of the compiled sources. */
const PLACES = ['../fixtures/', '../../../../fixtures/']

/** The path of a file below `fixtures/`. */
export function findFixture(name: string): string {
  const paths = PLACES.map((place) => fileURLToPath(new URL(`${place}${name}`, import.meta.url)))
  const found = paths.find((path) => existsSync(path))
  if (found !== undefined) return found
  throw new CofferError('internal', `The package was installed without fixtures/${name}.`)
}
