/**
 * Card fields for tests, with the interface of version 2 of the hosted fields. The inputs are in the page, so the
 * fields do not protect values from the page. The build wraps this program into a function with the parameter `COFFER`.
 * The server appends the call of this function.
 */
import { createElement } from './element.js'
import { missing } from './errors.js'
import type { FieldOptions } from './options.js'
import { hasElement } from './payload.js'
import { createSend, type Server } from './requests.js'
import { createServices } from './services.js'

export interface Given extends Server {
  /** Whether each field is in a frame, as the hosted fields are. */
  frame: boolean
}

/** Parts of the older package that pages with a public key do not use. */
const MISSING = [
  'applications',
  'applicationKeys',
  'applicationTemplates',
  'tenants',
  'logs',
  'reactorFormulas',
  'reactors',
  'permissions',
  'proxies',
  'threeds',
]

function createFields({ url, prefix, frame }: Given) {
  const withKey = (getKey: () => string | undefined) => ({
    ...createServices(createSend({ url, prefix }, getKey), prefix),
    createElement: (type: string, options: FieldOptions = {}) => createElement(type, options, frame),
    hasElement,
  })
  let latestKey: string | undefined
  return {
    ...withKey(() => latestKey),
    /** Ignores the further arguments of the hosted `init`, which contain addresses of hosted parts. */
    async init(apiKey: string | undefined) {
      latestKey = apiKey
      return withKey(() => apiKey)
    },
  }
}

/** In version 3, the global `BasisTheory` is a function. In older versions `BasisTheory` is an object. */
function refuseVersion3(): never {
  throw missing('version 3 of Elements')
}

/** Does nothing if the page has card fields already. */
function install(given: Given): void {
  if ('BasisTheoryElements' in window) return
  const fields = createFields(given)
  const basistheory = async (apiKey: string) => {
    if (typeof apiKey !== 'string' || apiKey === '') throw new Error('API key is required')
    return fields.init(apiKey)
  }
  const old = Object.assign(refuseVersion3, {
    ...fields,
    init: async (apiKey: string) => Object.assign(old, await fields.init(apiKey)),
  })
  for (const name of MISSING)
    Object.defineProperty(old, name, {
      get() {
        throw missing(`BasisTheory.${name}`)
      },
    })
  Object.assign(window, { BasisTheoryElements: fields, basistheory, BasisTheory: old })
}

declare const COFFER: Given
install(COFFER)
