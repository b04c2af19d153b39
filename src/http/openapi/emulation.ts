import { readFileSync } from 'node:fs'
import { findFixture } from '../../assets.js'

/**
 * An entry is `METHOD /path`, `METHOD /path attribute`, `| filter` or a text. `in_2023`: entries of the interface of
 * January 2023. `since_2023`: later entries of the service or of Coffer.
 */
export interface Area {
  area: string
  in_2023?: string[]
  since_2023?: string[]
  without?: string
  /** Properties of bodies that are accepted but have no effect. */
  ignored?: string[]
  /** The paths of an area that is missing completely, with all paths below them. `{}` matches any segment. */
  not_emulated?: string[]
  /** The day and the counts of the last run of `coffer conform` on the service: `2026-11-29: 40 of 41 calls equal`. */
  last_compared?: string
}

interface Client {
  name: string
  package?: string
  language: string
  code: string[]
}

export const CLIENT_PREFIX = 'bt'

export const readAreas = () => readJson('emulation.json') as Area[]
export const readClients = () => readJson('clients.json') as Client[]

function readJson(name: string): unknown {
  return JSON.parse(readFileSync(findFixture(name), 'utf8'))
}

export function rateArea({ in_2023, without, ignored = [], not_emulated }: Area): [string, string] {
  const list = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ')
  const rated = without === undefined ? 'emulated' : `partly: without ${without}`
  const today = ignored.length === 0 ? rated : `${rated}; ignores ${list(ignored)} in requests`
  const out = not_emulated && `not emulated: ${list(not_emulated)}`
  return [in_2023 === undefined ? '–' : 'emulated', out ?? today]
}
