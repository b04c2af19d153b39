/** Published test data. Import this module dynamically, so that only commands that need the data load it. */
import published from '../../../fixtures/enrichment.json' with { type: 'json' }
import { brandNameOf } from '../token/brand-names.js'
import { isScaRequired } from '../token/test-cards.js'
import type { CardEnrichment } from './card-enrichment.js'

export type BankStatus = 'enabled' | 'disabled' | 'inconclusive'

type CountryCode = keyof typeof published.countries

/** Coffer does not ask a bank. An account outside the published data is `inconclusive`. */
export function verifyAccount(routingNumber: string, accountNumber: string): BankStatus {
  const found = published.bank_accounts.find(
    ({ routing_number, account_number }) =>
      routing_number === routingNumber && account_number === accountNumber,
  )
  return (found?.status as BankStatus | undefined) ?? 'inconclusive'
}

export function findEnrichment(number: string): CardEnrichment | undefined {
  const range = published.card_ranges.find((each) => isWithin(number, each))
  if (range !== undefined) return describeRange(range)
  return isScaRequired(number) ? { funding: 'credit' } : undefined
}

/** Returns the brand. With `isFake`, also returns the funding and the country that all matching ranges share. */
export function describeBin(bin: string, { isFake }: { isFake: boolean }) {
  const ranges = isFake ? published.card_ranges.filter((range) => overlaps(bin, range)) : []
  const described = ranges.map(describeRange)
  const funding = common(described.map((each) => each.funding))
  const country = common(described.map((each) => each.issuer_country?.name))
  return {
    brand: brandNameOf(bin),
    funding: funding && funding.charAt(0).toUpperCase() + funding.slice(1),
    issuer: country === undefined ? undefined : { country },
  }
}

interface Range {
  from: string
  to: string
}

/** For texts of digits with equal length, the order of the texts is the order of the numbers. */
function isWithin(number: string, { from, to }: Range): boolean {
  return number.length === from.length && number >= from && number <= to
}

function overlaps(bin: string, { from, to }: Range): boolean {
  return bin >= from.slice(0, bin.length) && bin <= to.slice(0, bin.length)
}

function describeRange({ funding, country }: { funding: string; country: string }): CardEnrichment {
  return {
    funding: funding as CardEnrichment['funding'],
    issuer_country: published.countries[country as CountryCode],
  }
}

function common(values: readonly (string | undefined)[]): string | undefined {
  const [first, ...others] = new Set(values)
  return others.length === 0 ? first : undefined
}
