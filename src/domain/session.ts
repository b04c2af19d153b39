/** Sessions: short-lived keys for browsers. A public application creates one, a private one says what it may do. */
import { base58 } from './base58.js'

/** 128 random bits. */
export const SESSION_KEY_BYTES = 16
export const SESSION_MINUTES = 3
export const LONGEST_SESSION_HOURS = 24
/** Of one application, as the one that creates or authorizes them. */
export const MOST_LIVE_SESSIONS = 10_000
export const MOST_CONDITIONS = 20

const LENGTH = 22
const SESSION_KEY = /^key_sess_[1-9A-HJ-NP-Za-km-z]{22}$/

/** `key_sess_` and 22 base58 characters. */
export function formatSessionKey(bytes: Uint8Array): string {
  return `key_sess_${formatNonce(bytes)}`
}

/** 22 base58 characters. */
export function formatNonce(bytes: Uint8Array): string {
  return base58(bytes, LENGTH)
}

/** Whether the text has the format of a session key; callers hash nothing else. */
export function isSessionKey(text: string): boolean {
  return SESSION_KEY.test(text)
}
