import { validationError } from '../../errors.js'

const PORTS: Record<string, number> = { 'smtp:': 587, 'smtps:': 465 }
/** Only a mail server on this machine may get the password without TLS. */
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/

/** @throws CofferError `validation`. The message does not contain the password. */
export function readMailServer(text: string) {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const port = PORTS[url?.protocol ?? '']
  const isBare = url !== undefined && /^\/?$/.test(url.pathname) && url.search === '' && url.hash === ''
  if (url === undefined || port === undefined || url.hostname === '' || !isBare)
    throw validationError('must be smtp://user:password@host:port or smtps://user:password@host:port')
  const [user, password] = [decode(url.username), decode(url.password)]
  // `implicit`: TLS from the first byte. `offered`: STARTTLS if the server supports it. `required`: STARTTLS must
  // succeed.
  const tls = url.protocol === 'smtps:' ? 'implicit' : LOOPBACK.test(url.hostname) ? 'offered' : 'required'
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const place = { host, port: url.port === '' ? port : Number(url.port), tls } as const
  return { ...place, ...(user === '' ? {} : { user, password }) }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw validationError('must percent-encode user and password: % only before two hex digits')
  }
}

export type Sender = Record<'name' | 'address', string>

const NAME_LIMIT = 200

export function readSender(text: string): Sender {
  const [, given, bracketed] = /^([^<>]*)<([^<>]*)>$/.exec(text) ?? []
  const name = (given ?? '').trim().replace(/^"(.*)"$/, '$1')
  const address = bracketed ?? text
  if (name.length > NAME_LIMIT || /[\p{Cc}\p{Zl}\p{Zp}]/u.test(name))
    throw validationError(`must have a name of at most ${NAME_LIMIT} visible characters`)
  checkEmail(address)
  return { name, address }
}

export function defaultSender(publicUrl: string): Sender {
  const { hostname } = new URL(publicUrl)
  const domain = /^[a-z0-9.-]+$/.test(hostname) ? hostname : 'localhost'
  return { name: 'Coffer', address: `no-reply@${domain}` }
}

/** 64 characters before the at sign and 255 characters after it (RFC 5321, 4.5.3.1). */
export const EMAIL_LIMIT = 320

const ATEXT = "[A-Za-z0-9!#$%&'*+\\-/=?^_`{|}~]+"
const DOT_ATOM = `${ATEXT}(?:\\.${ATEXT})*`
/** A quoted string without tabs and folding. */
const QUOTED = '"(?:[ !#-\\[\\]-~]|\\\\[ -~])*"'
const LITERAL = '\\[[!-Z^-~]*\\]'
const ADDRESS = new RegExp(`^(?:${DOT_ATOM}|${QUOTED})@(?:${DOT_ATOM}|${LITERAL})$`)

export function checkEmail(text: string): void {
  if (text.length > EMAIL_LIMIT) throw validationError(`must have at most ${EMAIL_LIMIT} characters`)
  if (/[^\x20-\x7e]/.test(text))
    throw validationError('must be ASCII without control characters; write a domain in its xn-- form')
  if (!ADDRESS.test(text))
    throw validationError('must be an e-mail address such as ada@example.com (RFC 5322)')
}

/** RFC 5321 allows case-sensitive local parts, but no mail server in use distinguishes the case. */
export function normalizeEmail(email: string): string {
  return email.toLowerCase()
}
