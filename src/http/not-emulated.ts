/** The areas of the interface that are left out on purpose. */

/** Paths, each with everything below it; `{}` stands for any segment. */
export const NOT_EMULATED: Readonly<Record<string, readonly string[]>> = {
  Webhooks: ['/webhooks'],
  'Token intents': ['/token-intents'],
  '3-D Secure': ['/3ds'],
  'Apple Pay and Google Pay': ['/apple-pay', '/google-pay'],
  'Enrichment of cards and bank accounts': ['/enrichments'],
  Documents: ['/documents'],
  'Keys for encryption by the client': ['/keys'],
  'Network tokens': ['/network-tokens'],
  'Account updater': ['/account-updater'],
  'Payments by agents': ['/agentic'],
  Connections: ['/connections', '/tenants/self/connections'],
  'Application templates': ['/application-templates'],
  // Clients name the tenant by its id here.
  Merchants: ['/tenants/{}/merchants'],
  'Owner and security contact of the tenant': ['/tenants/self/owner', '/tenants/self/security-contact'],
}

const patterns = Object.entries(NOT_EMULATED).flatMap(([area, paths]) =>
  paths.map((path) => ({ area, parts: path.split('/').slice(1) })),
)

/** The area that the path with these segments belongs to, if it is left out. */
export function findNotEmulated(segments: readonly (string | undefined)[]): string | undefined {
  return patterns.find(({ parts }) => parts.every((part, at) => part === '{}' || part === segments[at]))?.area
}
