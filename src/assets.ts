import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CofferError } from './errors.js'

/** Returns the path of a file of the package. `path` is relative to `dist`. @throws CofferError `internal` if it is missing */
export function findAsset(path: string): string {
  // The path is relative to the folder of the bundle, or of this compiled module if there is no bundle.
  const paths = ['./', '../'].map((base) => fileURLToPath(new URL(base + path, import.meta.url)))
  const found = paths.find((each) => existsSync(each))
  if (found !== undefined) return found
  throw new CofferError('internal', `The installed package lacks ${path}.`)
}

export function findFixture(name: string): string {
  return findAsset(`../fixtures/${name}`)
}
