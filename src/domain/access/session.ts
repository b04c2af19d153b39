/** Sessions: short-lived keys for browsers. A public application creates one, a private one says what it may do. */

/** The prefix of keys of sessions; nonces have none. */
export const SESSION_KEY = 'key_sess_'
export const SESSION_MINUTES = 3
export const LONGEST_SESSION_HOURS = 24
/** The most live sessions that one application may create, or authorize. */
export const MOST_LIVE_SESSIONS = 10_000
export const MOST_CONDITIONS = 20
