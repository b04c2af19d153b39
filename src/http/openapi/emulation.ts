/** Reads from `fixtures/` which parts of the interface are emulated, and how clients are pointed at this server. */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CofferError } from '../../errors.js'

/**
 * An area of the interface. A part is `METHOD /path` (of several methods: `GET PUT /path`), `METHOD /path attribute`, `| name`
 * for a filter of expressions, or a text. `early`: parts of the interface of January 2023; `since`: those added later.
 */
export interface Area {
  area: string
  early?: string[]
  since?: string[]
  /** The parts that are left out, as Markdown. */
  without?: string
  /** The paths of an area that is left out as a whole, each with all below it; `{}` stands for any segment. */
  not_emulated?: string[]
}

/** The shortest use of a client. `package` is absent for a program. */
interface Client {
  name: string
  package?: string
  language: string
  /** Lines. */
  code: string[]
}

/** The prefix that the packages of clients send. */
export const CLIENT_PREFIX = 'bt'

/** Beside the bundle, and beside the compiled modules. */
const PLACES = ['../fixtures/', '../../../../fixtures/']

function readFixture(name: string): unknown {
  const paths = PLACES.map((place) => fileURLToPath(new URL(place + name, import.meta.url)))
  const path = paths.find((each) => existsSync(each))
  if (path === undefined) throw new CofferError('internal', `The installed package lacks fixtures/${name}.`)
  return JSON.parse(readFileSync(path, 'utf8'))
}

export const readAreas = () => readFixture('emulation.json') as Area[]
export const readClients = () => readFixture('clients.json') as Client[]

/** The cells of an area in the table: the interface of January 2023, and that of today. */
export function rateArea({ early, without, not_emulated }: Area): [string, string] {
  const today = without === undefined ? 'emulated' : `partly: without ${without}`
  return [early === undefined ? '–' : 'emulated', not_emulated === undefined ? today : 'not emulated']
}
