/** Made-up payloads of wallets for tests. */

const BASE64 = 'bWFkZSB1cA=='

export const CARD = { number: '4242424242424242', expiration_month: 12, expiration_year: 2040 }
export const AUTHENTICATION = { cryptogram: 'AAAAAA=', eci_indicator: '7' }

/** A plain payload of Google Pay. `message`: JSON text, or a value that becomes JSON text. */
export function plainPayload(signature: string, message: unknown) {
  const signedMessage = typeof message === 'string' ? message : JSON.stringify(message)
  return { google_payment_data: { protocolVersion: 'BasisTheory', signature, signedMessage } }
}

/** A payload in the form that Google Pay sends. Its signing key has expired. */
export const ENCRYPTED = {
  google_payment_data: {
    signature: 'MEQCIBmade+up/0=',
    intermediateSigningKey: {
      signedKey: '{"keyValue":"MFkwmade+up/Q==","keyExpiration":"1737724267469"}',
      signatures: ['MEQCIHmade+up/A=='],
    },
    protocolVersion: 'ECv2',
    signedMessage: JSON.stringify({
      encryptedMessage: 'XURDmade+up/g==',
      ephemeralPublicKey: 'BHBDmade+up/c=',
      tag: 'Hle3made+up/Y=',
    }),
  },
}

export const APPLE_PAYMENT = {
  version: 'EC_v1',
  data: BASE64,
  signature: BASE64,
  header: { ephemeralPublicKey: BASE64, publicKeyHash: BASE64, transactionId: 'c0ffee' },
}

export function applePayload(payment: object = {}, more: object = {}) {
  return { apple_payment_data: { paymentData: { ...APPLE_PAYMENT, ...payment }, ...more } }
}

/** The smallest file that has the form of a PKCS#12 file, as base64. */
export const CERTIFICATE_FILE = 'MAMCAQM='
