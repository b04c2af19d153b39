export const MAX_DOMAINS = 99

const MAX_NAME_LENGTH = 253
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i

export const DOMAIN_RULE =
  'must be a domain such as shop.example.com, without a scheme, port, path or wildcard; write non-ASCII letters in the form xn--'

/** An IPv4 address is no domain name, because its last label is a number. */
export function isDomainName(text: string): boolean {
  const labels = text.split('.')
  return (
    text.length <= MAX_NAME_LENGTH &&
    labels.every((label) => LABEL.test(label)) &&
    !/^\d+$/.test(labels.at(-1)!)
  )
}

export function isSameDomain(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase()
}

export function addDomains(domains: readonly string[], names: readonly string[]): string[] {
  const added = [...domains]
  const known = new Set(domains.map((each) => each.toLowerCase()))
  for (const name of names) {
    if (known.has(name.toLowerCase())) continue
    known.add(name.toLowerCase())
    added.push(name)
  }
  return added
}
