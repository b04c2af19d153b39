import { readFileSync } from 'node:fs'
import { findFixture } from '../../assets.js'

/**
 * An entry is `METHOD /path`, `METHOD /path attribute`, `| filter` or a text. `in_2023`: entries of the interface of
 * January 2023. `since_2023`: entries that the service or Coffer added later.
 */
export interface Area {
  area: string
  in_2023?: string[]
  since_2023?: string[]
  without?: string
  /** Properties of bodies that are ignored. Every other property has an effect, is stored, or is refused. */
  ignored?: string[]
  /**
   * The paths of an area that is missing completely. Every path below one of these paths also belongs to the
   * area. `{}` stands for any segment.
   */
  not_emulated?: string[]
  /** The day of the last run of `coffer conform` on the service, and its counts: `2026-11-29: 40 of 41 calls equal`. */
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

/** The two ratings of an area in the table: for a client of January 2023, and for a client of today. */
export function rateArea({ in_2023, without, ignored = [], not_emulated }: Area): [string, string] {
  const list = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ')
  const rated = without === undefined ? 'emulated' : `partly: without ${without}`
  const today = ignored.length === 0 ? rated : `${rated}; ignores ${list(ignored)} in requests`
  const out = not_emulated && `not emulated: ${list(not_emulated)}`
  return [in_2023 === undefined ? '–' : 'emulated', out ?? today]
}
