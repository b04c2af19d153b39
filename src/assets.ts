import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CofferError } from './errors.js'

/** `path`: from `dist`. @throws CofferError `internal` if the package lacks the file */
export function findAsset(path: string): string {
  // Relative to the bundle, or to this compiled module.
  const paths = ['./', '../'].map((base) => fileURLToPath(new URL(base + path, import.meta.url)))
  const found = paths.find((each) => existsSync(each))
  if (found !== undefined) return found
  throw new CofferError('internal', `The installed package lacks ${path}.`)
}

export function findFixture(name: string): string {
  return findAsset(`../fixtures/${name}`)
}
