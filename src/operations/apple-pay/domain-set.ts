import {
  addDomains,
  DOMAIN_RULE,
  isDomainName,
  isSameDomain,
  MAX_DOMAINS,
} from '../../domain/wallets/domain-name.js'
import { CofferError, invalid } from '../../errors.js'
import type { Context } from '../../framework/context.js'

const DOMAINS = 'wallet_domains'
const ID = 'apple'

/** @throws CofferError `validation` */
export function requireDomainName(path: string, text: string): void {
  if (!isDomainName(text)) throw invalid(path, DOMAIN_RULE)
}

export async function readDomains({ store, caller }: Context): Promise<readonly string[]> {
  return (await store.get(DOMAINS, caller.tenant, ID))?.domains ?? []
}

export async function isRegistered(context: Context, domain: string): Promise<boolean> {
  return (await readDomains(context)).some((each) => isSameDomain(each, domain))
}

/**
 * Stores `before`, and then the `names` that are not in `before`.
 * @throws CofferError `unprocessable` if a name cannot be verified, or if there are too many domains
 */
export async function storeDomains(
  context: Context,
  before: readonly string[],
  names: readonly string[],
): Promise<string[]> {
  const unverified = (await context.setting('wallets.unverified_domains')).split(',')
  const refused = names.find((name) => unverified.some((each) => isSameDomain(each, name)))
  if (refused !== undefined)
    throw new CofferError(
      'unprocessable',
      `The domain ${refused} cannot be verified, because the setting wallets.unverified_domains contains it.`,
    )
  const domains = addDomains(before, names)
  if (domains.length > MAX_DOMAINS)
    throw new CofferError(
      'unprocessable',
      `A tenant has at most ${MAX_DOMAINS} domains. Deregister one first.`,
    )
  await write(context, domains)
  return domains
}

export async function removeDomain(context: Context, name: string): Promise<void> {
  const domains = await readDomains(context)
  const kept = domains.filter((each) => !isSameDomain(each, name))
  if (kept.length < domains.length) await write(context, kept)
}

async function write({ store, caller }: Context, domains: string[]): Promise<void> {
  const record = { id: ID, domains } as const
  const isFirst = (await store.get(DOMAINS, caller.tenant, ID)) === undefined
  await (isFirst
    ? store.insert(DOMAINS, caller.tenant, record)
    : store.replace(DOMAINS, caller.tenant, record))
}

/** Domains are logged as a change of the tenant. */
export async function logDomains(context: Context): Promise<void> {
  context.audit.record('tenant', (await context.tenant()).id)
}
