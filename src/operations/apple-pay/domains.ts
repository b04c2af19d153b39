/** Pages of registered domains can use Apple Pay. Coffer does not fetch the verification file of a domain. */

import { collect, refuseErrors } from '../../domain/property-errors.js'
import type { PropertyErrors } from '../../errors.js'
import { requires } from '../../framework/declaration.js'
import { change, query } from '../../framework/operation.js'
import { arrayOf, component, enumOf, object, text } from '../../framework/output.js'
import { inputSchema } from '../../framework/schema.js'

const PATH = '/apple-pay/domain-registration'
const MAX_GIVEN = 1000
const access = requires('apple-pay:manage')
const domain = { type: 'string', description: 'A domain, such as shop.example.com.' } as const
const byDomain = inputSchema(['domain'], { domain })
const log = (done: string) => ({ operation: 'update', message: `Apple Pay domains ${done}` }) as const

const domainsOutput = object({
  domains: arrayOf(
    component('ApplePayDomain', ['domain', 'status'], { domain: text, status: enumOf('verified') }),
  ),
})

function view(domains: readonly string[]) {
  return { domains: domains.map((name) => ({ domain: name, status: 'verified' as const })) }
}

export const registerDomain = change({
  name: 'apple-pay domain register',
  summary: 'Register a domain, and list all registered domains.',
  details:
    'A domain counts as verified, unless the setting wallets.unverified_domains contains it. A tenant has at most 99 domains.',
  access,
  route: `POST ${PATH}`,
  log: log('registered'),
  input: byDomain,
  output: domainsOutput,
  cli: { positionals: ['domain'] },
  examples: ['coffer apple-pay domain register shop.example.com'],
  async check({ domain }) {
    const { requireDomainName } = await import('./domain-set.js')
    if (domain !== undefined) requireDomainName('domain', domain)
  },
  async run(context, { domain }) {
    const { logDomains, readDomains, storeDomains } = await import('./domain-set.js')
    const domains = await storeDomains(context, await readDomains(context), [domain])
    await logDomains(context)
    return view(domains)
  },
})

export const replaceDomains = change({
  name: 'apple-pay domain replace',
  summary: 'Register exactly these domains; other domains are deregistered.',
  access,
  route: `PUT ${PATH}`,
  log: log('replaced'),
  input: inputSchema(['domains'], {
    domains: { type: 'array', items: domain, maxItems: MAX_GIVEN, flag: 'domain', description: 'A domain.' },
  }),
  output: domainsOutput,
  examples: ['coffer apple-pay domain replace --domain shop.example.com --domain www.example.com'],
  async check({ domains = [] }) {
    const { requireDomainName } = await import('./domain-set.js')
    const errors: PropertyErrors = {}
    for (const [at, name] of domains.entries())
      if (name !== undefined)
        collect(errors, `domains[${at}]`, () => requireDomainName(`domains[${at}]`, name))
    refuseErrors(errors)
  },
  async run(context, { domains }) {
    const { logDomains, storeDomains } = await import('./domain-set.js')
    const stored = await storeDomains(context, [], domains)
    await logDomains(context)
    return view(stored)
  },
})

export const listDomains = query({
  name: 'apple-pay domain list',
  summary: 'List the registered domains.',
  access,
  route: `GET ${PATH}`,
  output: domainsOutput,
  examples: ['coffer apple-pay domain list'],
  async run(context) {
    const { readDomains } = await import('./domain-set.js')
    return view(await readDomains(context))
  },
})

export const deregisterDomain = change({
  name: 'apple-pay domain deregister',
  summary: 'Deregister a domain. It is no error if the domain is not registered.',
  access,
  route: 'POST /apple-pay/domain-deregistration',
  log: log('deregistered'),
  input: byDomain,
  cli: { positionals: ['domain'] },
  examples: ['coffer apple-pay domain deregister shop.example.com'],
  async run(context, { domain }) {
    const { logDomains, removeDomain } = await import('./domain-set.js')
    await removeDomain(context, domain)
    await logDomains(context)
    return undefined
  },
})
