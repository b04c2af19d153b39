/** The card that replaces the card in an encrypted payload. */
import type { WalletAuthentication, WalletCard } from '../records/wallet-record.js'

const MONTH = 6
const YEARS_AHEAD = 3

export const SIMULATED_AUTHENTICATION: WalletAuthentication = {
  threeds_cryptogram: 'AAAAAA=',
  eci_indicator: '7',
}

export function simulateCard(now: number): WalletCard {
  const expiration_year = new Date(now).getUTCFullYear() + YEARS_AHEAD
  return { number: '4242424242424242', expiration_month: MONTH, expiration_year }
}

/** Returns the end of the expiration month, in ms since the epoch. */
export function endOfCard({ expiration_month, expiration_year }: WalletCard): number {
  return Date.UTC(expiration_year, expiration_month)
}
