/** Sends mail with nodemailer. Error messages contain neither addresses nor passwords. */
import { rootCertificates } from 'node:tls'
import { createTransport } from 'nodemailer'
import { readMailServer, type Sender } from '../domain/invitation/mail-server.js'

const CONNECT_MS = 10_000
const SILENCE_MS = 30_000
const MAX_PER_CONNECTION = 100

/** `id`: the Message-ID. `date`: ms since the epoch. */
export type Message = Record<'id' | 'to' | 'subject' | 'text' | 'html', string> & {
  from: Sender
  date: number
}

/**
 * `refused`: this mail will never be accepted. `postponed`: this mail may be accepted later. `unreachable`: no mail can
 * be sent now. The reason contains no address.
 */
export type Delivery =
  | { outcome: 'sent' }
  | { outcome: 'refused' | 'postponed' | 'unreachable'; reason: string }

export type Mailer = ReturnType<typeof openSmtp>

export function openSmtp({ url, ca }: { url: string; ca: string | undefined }) {
  const { host, port, tls, user, password } = readMailServer(url)
  const transport = createTransport({
    pool: true,
    maxConnections: 1,
    maxMessages: MAX_PER_CONNECTION,
    host,
    port,
    secure: tls === 'implicit',
    requireTLS: tls === 'required',
    ...(user === undefined ? {} : { auth: { user, pass: password ?? '' } }),
    tls: {
      minVersion: 'TLSv1.2',
      // `offered`: a server on this machine, which may have no TLS, or a self-signed certificate. Its certificate is
      // checked only if `ca` is given.
      rejectUnauthorized: tls !== 'offered' || ca !== undefined,
      ...(ca === undefined ? {} : { ca: [...rootCertificates, ca] }),
    },
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    socketTimeout: SILENCE_MS,
    // No mail of Coffer needs to load a file or URL.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return {
    server: `${host}:${port}`,
    /** Never rejects. */
    send: async ({ id, to, from, date, ...content }: Message): Promise<Delivery> => {
      // nodemailer removes < and > from an address, so the mail would go to another address.
      if (/[<>]/.test(to)) return { outcome: 'refused', reason: 'the address contains < or >.' }
      try {
        await transport.sendMail({
          ...content,
          messageId: id,
          date: new Date(date),
          from,
          to: { name: '', address: to },
          // With an envelope, nodemailer does not parse the addresses. Its parser could misread quoted addresses.
          envelope: { from: from.address, to: [to] },
          // RFC 3834: suppresses automatic replies.
          headers: { 'Auto-Submitted': 'auto-generated' },
        })
        return { outcome: 'sent' }
      } catch (error) {
        return explain(error)
      }
    },
    close: () => transport.close({ force: true }),
  }
}

/** nodemailer's codes of errors that affect every mail. */
const UNREACHABLE = 'EDNS ECONNECTION ESOCKET ETIMEDOUT ETLS EAUTH ENOAUTH EPROTOCOL'.split(' ')

function explain(error: unknown): Delivery {
  const { code = '', responseCode = 0 } = error as { code?: string; responseCode?: number }
  if (UNREACHABLE.includes(code)) return { outcome: 'unreachable', reason: describeCause(error, code) }
  // RFC 5321, 4.2.1: 5yz is permanent, 4yz is temporary.
  if (responseCode >= 500) return { outcome: 'refused', reason: `it refuses this mail (${responseCode}).` }
  if (responseCode >= 400)
    return { outcome: 'postponed', reason: `it does not accept this mail now (${responseCode}).` }
  if (code === 'EENVELOPE' || code === 'EMESSAGE')
    return { outcome: 'refused', reason: 'it does not accept this mail.' }
  return { outcome: 'postponed', reason: `something went wrong (${code || 'unknown reason'}).` }
}

function describeCause(error: unknown, code: string): string {
  const { message, cause } = error as { message?: string; cause?: { code?: string } }
  if (code.endsWith('AUTH')) return 'it does not accept the user and password of mail.url.'
  return /certificate|CERT|altnames/i.test(`${cause?.code ?? ''} ${message ?? ''}`)
    ? 'its certificate is not trusted. Give the authority with: coffer config set mail.ca @ca.pem'
    : `it cannot be reached (${code}).`
}
