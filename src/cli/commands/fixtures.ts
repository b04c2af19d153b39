import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CofferError } from '../../errors.js'

/** Relative to the bundle, and to the compiled sources. */
const PLACES = ['../fixtures/', '../../../../fixtures/']

export function findFixture(name: string): string {
  const paths = PLACES.map((place) => fileURLToPath(new URL(`${place}${name}`, import.meta.url)))
  const found = paths.find((path) => existsSync(path))
  if (found !== undefined) return found
  throw new CofferError('internal', `The installed package lacks fixtures/${name}.`)
}
