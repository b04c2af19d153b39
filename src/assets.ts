import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CofferError } from './errors.js'

/** Finds a file of the package by its path from `dist`. @throws CofferError `internal` if there is none */
export function findAsset(path: string): string {
  // From the bundle, or from this module as compiled.
  const paths = ['./', '../'].map((base) => fileURLToPath(new URL(base + path, import.meta.url)))
  const found = paths.find((each) => existsSync(each))
  if (found !== undefined) return found
  throw new CofferError('internal', `The installed package lacks ${path}.`)
}

export function findFixture(name: string): string {
  return findAsset(`../fixtures/${name}`)
}
