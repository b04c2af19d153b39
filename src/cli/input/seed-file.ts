/** Reads a seed from a file: YAML if its name ends with .yaml or .yml, else JSON. */
import { parseJson } from '../../domain/json/json.js'
import type { InputReader } from './input.js'

export const SEED_LIMIT_BYTES = 4 * 1024 * 1024

const YAML = /\.ya?ml$/i

export function isYaml(path: string): boolean {
  return YAML.test(path)
}

/**
 * `path`: `-` means standard input, which must contain JSON.
 * @throws CofferError `validation`, and the errors of `readFile`
 */
export async function readSeedFile(input: InputReader, path: string, flag: string): Promise<unknown> {
  const source = path === '-' ? 'standard input' : path
  const text = await input.readFile(path, path === '-' ? source : flag, SEED_LIMIT_BYTES)
  if (!isYaml(path)) return parseJson(text, { source })
  const { parseYaml } = await import('./yaml.js')
  return parseYaml(text, source)
}
