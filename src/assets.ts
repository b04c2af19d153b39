import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CofferError } from './errors.js'

/** `path`: relative to `dist`. @throws CofferError `internal` if the file is missing */
export function findAsset(path: string): string {
  // The bundle is in `dist`. If there is no bundle, this module is in `dist/src`.
  const paths = ['./', '../'].map((base) => fileURLToPath(new URL(base + path, import.meta.url)))
  const found = paths.find((each) => existsSync(each))
  if (found !== undefined) return found
  throw new CofferError('internal', `The installed package lacks ${path}.`)
}

export function findFixture(name: string): string {
  return findAsset(`../fixtures/${name}`)
}
