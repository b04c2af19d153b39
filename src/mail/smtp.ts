/**
 * The way to a mail server: nodemailer composes the message and speaks SMTP. It knows nothing of invitations, and says
 * what went wrong in words that hold neither address nor password.
 */
import { rootCertificates } from 'node:tls'
import { createTransport } from 'nodemailer'
import { type MailServer, readMailServer } from '../domain/mail-server.js'
import type { Delivery, Mailer, Message } from '../framework/mail-port.js'

const CONNECT_MS = 10_000
const SILENCE_MS = 30_000
/** Mails over one connection, before another is opened. */
const MOST_PER_CONNECTION = 100

/** A mailer over one connection. `ca`: PEM certificates to trust besides Node's own. */
export function openSmtp({ url, ca }: { url: string; ca: string | undefined }): Mailer {
  const server = readMailServer(url)
  const transport = createTransport({
    pool: true,
    maxConnections: 1,
    maxMessages: MOST_PER_CONNECTION,
    ...describeConnection(server),
    tls: describeTrust(server, ca),
    connectionTimeout: CONNECT_MS,
    greetingTimeout: CONNECT_MS,
    socketTimeout: SILENCE_MS,
    // Nothing in a message of ours comes from a file or a URL.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return {
    server: `${server.host}:${server.port}`,
    send: async (message) => {
      // nodemailer takes brackets out of an address, which then is another one.
      if (/[<>]/.test(message.to)) return { outcome: 'refused', reason: 'the address holds a < or >.' }
      try {
        await transport.sendMail(describeMessage(message))
        return { outcome: 'sent' }
      } catch (error) {
        return explain(error)
      }
    },
    close: () => transport.close({ force: true }),
  }
}

/** A server on this machine that may be spoken to in the clear needs no certificate that anybody vouches for. */
function describeTrust({ tls }: MailServer, ca: string | undefined) {
  const rejectUnauthorized = tls !== 'offered' || ca !== undefined
  const roots = ca === undefined ? {} : { ca: [...rootCertificates, ca] }
  return { minVersion: 'TLSv1.2', rejectUnauthorized, ...roots } as const
}

function describeConnection({ host, port, tls, user, password }: MailServer) {
  return {
    host,
    port,
    secure: tls === 'implicit',
    requireTLS: tls === 'required',
    ...(user === undefined ? {} : { auth: { user, pass: password ?? '' } }),
  }
}

/** The envelope is spelled out, so that no address is ever parsed again: a quoted one could mean two things. */
function describeMessage({ id, from, to, subject, text, html, date }: Message) {
  return {
    messageId: id,
    date: new Date(date),
    from,
    to: { name: '', address: to },
    envelope: { from: from.address, to: [to] },
    subject,
    text,
    html,
    // RFC 3834: no machine shall answer, so that no holiday notice comes back.
    headers: { 'Auto-Submitted': 'auto-generated' },
  }
}

/** What nodemailer's codes mean for the mail, and for those after it. */
const UNREACHABLE: Record<string, string> = {
  EDNS: 'its name is not known.',
  ECONNECTION: 'it does not answer.',
  ESOCKET: 'the connection failed.',
  ETIMEDOUT: 'it took too long to answer.',
  ETLS: 'a secure connection could not be made.',
  EAUTH: 'it does not accept the user and password of mail.url.',
  ENOAUTH: 'it wants a user and password in mail.url.',
  EPROTOCOL: 'it does not speak SMTP.',
}

function explain(error: unknown): Delivery {
  const { code = '', responseCode = 0 } = error as { code?: string; responseCode?: number }
  const cause = UNREACHABLE[code]
  if (cause !== undefined) return { outcome: 'unreachable', reason: describeCause(error) ?? cause }
  // RFC 5321, 4.2.1: 5yz is for good, 4yz is for now.
  if (responseCode >= 500) return { outcome: 'refused', reason: `it refuses this mail (${responseCode}).` }
  if (responseCode >= 400)
    return { outcome: 'postponed', reason: `it does not take this mail now (${responseCode}).` }
  if (code === 'EENVELOPE' || code === 'EMESSAGE')
    return { outcome: 'refused', reason: 'it does not take such a mail.' }
  return { outcome: 'postponed', reason: `something went wrong (${code || 'unknown reason'}).` }
}

/** What somebody can do something about. */
function describeCause(error: unknown): string | undefined {
  const { message, cause } = error as { message?: string; cause?: { code?: string } }
  const text = `${cause?.code ?? ''} ${message ?? ''}`
  if (/ECONNREFUSED/.test(text)) return 'nobody listens there.'
  return /certificate|CERT|altnames/i.test(text)
    ? 'its certificate is not trusted. Give the authority with: coffer config set mail.ca @ca.pem'
    : undefined
}
