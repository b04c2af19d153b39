/** Sessions: short-lived keys for browsers. A public application creates one, a private one says what it may do. */

/** What their keys begin with; their nonces have no prefix. */
export const SESSION_KEY = 'key_sess_'
export const SESSION_MINUTES = 3
export const LONGEST_SESSION_HOURS = 24
/** Of one application, as the one that creates or authorizes them. */
export const MOST_LIVE_SESSIONS = 10_000
export const MOST_CONDITIONS = 20
