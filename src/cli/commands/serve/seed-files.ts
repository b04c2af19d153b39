/** `serve --seed` reads one file, or a directory whose files together describe the contents of the vault. */
import { readdir, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { isObject } from '../../../domain/json/json.js'
import { CofferError, codeOf, usage } from '../../../errors.js'
import type { CommandContext } from '../../context.js'
import { readSeedFile } from '../../input/seed-file.js'

const MAX_FILES = 100
const PLACE = /\bseed\.(\w+)\[(\d+)\]/g

interface SeedFile {
  name: string
  seed: Readonly<Record<string, unknown>>
}

export interface ReadSeed {
  seed: unknown
  chosenKeys: ReadonlySet<unknown>
  /**
   * In the texts of an error, replaces each place in the merged seed by the name of the file and the place in this
   * file.
   */
  explain(error: unknown): unknown
}

/** @throws CofferError `usage`, `validation` */
export async function readSeed(
  { cwd, input }: Pick<CommandContext, 'cwd' | 'input'>,
  path: string,
): Promise<ReadSeed> {
  const place = resolve(cwd, path)
  const isDirectory = path !== '-' && (await stat(place).catch(() => undefined))?.isDirectory() === true
  const read = (file: string) => readSeedFile(input, file, '--seed')
  if (!isDirectory) {
    const seed = await read(path)
    return { seed, chosenKeys: findKeys(seed), explain: (error) => error }
  }
  const found = await readdir(place).catch((error: unknown) => {
    throw usage(`--seed: ${path} cannot be read (${codeOf(error)}).`)
  })
  const names = chooseSeeds(found)
  if (names.length === 0) throw usage(`--seed: there is no file *.json, *.yaml or *.yml in ${path}.`)
  if (names.length > MAX_FILES) throw usage(`--seed: ${path} has more than ${MAX_FILES} files of seeds.`)
  const files: SeedFile[] = []
  for (const name of names) {
    const seed = await read(join(path, name))
    if (!isObject(seed)) throw usage(`--seed: ${join(path, name)} must contain an object.`)
    files.push({ name, seed })
  }
  const seed = merge(files)
  return { seed, chosenKeys: findKeys(seed), explain: (error) => explain(error, files) }
}

/**
 * Returns the names of seeds in the order of reading. Returns at most one name more than the limit, so that the caller
 * notices the excess.
 */
export function chooseSeeds(names: readonly string[]): string[] {
  // Skips names that begin with a dot, because a volume of Kubernetes contains directories with these names.
  const seeds = names.filter((name) => /^[^.].*\.(?:json|ya?ml)$/.test(name))
  return seeds.sort().slice(0, MAX_FILES + 1)
}

function findKeys(seed: unknown): ReadonlySet<unknown> {
  const itemsOf = (place: unknown, list: string): unknown[] => {
    const items = isObject(place) ? place[list] : undefined
    return Array.isArray(items) ? items : []
  }
  const tenants = [seed, ...itemsOf(seed, 'tenants')]
  const applications = tenants.flatMap((tenant) => itemsOf(tenant, 'applications')).filter(isObject)
  return new Set(applications.map(({ key }) => key).filter((key) => key !== undefined))
}

function merge(files: readonly SeedFile[]): object {
  const merged = new Map<string, unknown>()
  for (const { name, seed } of files) {
    for (const [property, value] of Object.entries(seed)) {
      // `$schema` is skipped, because each file may name a schema for editors.
      if (property === '$schema') continue
      const known = merged.get(property)
      if (known === undefined) merged.set(property, value)
      else if (Array.isArray(known) && Array.isArray(value)) merged.set(property, [...known, ...value])
      else
        throw usage(
          `--seed: ${name} sets "${property}", and an earlier file also sets it. Set it in one file.`,
        )
    }
  }
  return Object.fromEntries(merged)
}

function explain(error: unknown, files: readonly SeedFile[]): unknown {
  if (!(error instanceof CofferError)) return error
  const locate = (text: string) =>
    text.replace(PLACE, (whole, list: string, digits: string) => {
      let index = Number(digits)
      for (const { name, seed } of files) {
        const items = seed[list]
        const count = Array.isArray(items) ? items.length : 0
        if (index < count) return `${name}: ${list}[${index}]`
        index -= count
      }
      return whole
    })
  const { code, status, errors: own } = error
  const errors = Object.entries(own ?? {}).map(([path, why]) => [locate(path), why] as const)
  return new CofferError(code, locate(error.message), {
    ...{ status, cause: error },
    ...(own !== undefined && { errors: Object.fromEntries(errors) }),
  })
}
