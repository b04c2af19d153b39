import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CofferError } from '../../errors.js'

/** A part: `METHOD /path`, `METHOD /path attribute`, `| filter`, or a text; `early`: of January 2023. */
export interface Area {
  area: string
  early?: string[]
  since?: string[]
  /** The parts that are left out, as Markdown. */
  without?: string
  /** Properties of bodies that are ignored; all others that clients send are kept, done or refused. */
  ignored?: string[]
  /** The paths of an area that is left out as a whole, each with all below it; `{}` stands for any segment. */
  not_emulated?: string[]
}

interface Client {
  name: string
  package?: string
  language: string
  code: string[]
}

/** The prefix that the packages of clients send. */
export const CLIENT_PREFIX = 'bt'

/** The text of a file of the package. `path`: from the built files. @throws CofferError `internal` if there is none */
export function readAsset(path: string): string {
  // Beside the bundle, or three levels above this module as compiled.
  const found = ['./', '../../../']
    .map((place) => fileURLToPath(new URL(place + path, import.meta.url)))
    .find((each) => existsSync(each))
  if (found === undefined) throw new CofferError('internal', `The installed package lacks ${path}.`)
  return readFileSync(found, 'utf8')
}

export const readAreas = () => JSON.parse(readAsset('../fixtures/emulation.json')) as Area[]
export const readClients = () => JSON.parse(readAsset('../fixtures/clients.json')) as Client[]

/** The cells of an area in the table: the interface of January 2023, and that of today. */
export function rateArea({ early, without, ignored = [], not_emulated }: Area): [string, string] {
  const rated = without === undefined ? 'emulated' : `partly: without ${without}`
  const names = ignored.map((name) => `\`${name}\``).join(', ')
  const today = names === '' ? rated : `${rated}; ignores ${names} in requests`
  return [early === undefined ? '–' : 'emulated', not_emulated === undefined ? today : 'not emulated']
}
