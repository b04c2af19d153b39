/** Sending by SMTP with nodemailer. Error messages contain neither addresses nor passwords. */
import { rootCertificates } from 'node:tls'
import { createTransport } from 'nodemailer'
import { type MailServer, readMailServer } from '../domain/invitation/mail-server.js'
import type { Delivery, Mailer, Message } from '../framework/ports/mail.js'

const CONNECT_MS = 10_000
const SILENCE_MS = 30_000
/** Mails over one connection, before a new one is opened. */
const MOST_PER_CONNECTION = 100

/** A mailer over one connection. `ca`: additional PEM certificates to trust. */
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
    // Our messages never refer to files or URLs.
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return {
    server: `${server.host}:${server.port}`,
    send: async (message) => {
      // nodemailer removes brackets from an address, which would change the address.
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

/** For a server on this machine, which may also lack TLS, the certificate is checked only if `ca` is set. */
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

/** With an explicit envelope nodemailer does not parse the address again, which is ambiguous for quoted ones. */
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
    // RFC 3834: suppresses automatic replies.
    headers: { 'Auto-Submitted': 'auto-generated' },
  }
}

/** Reasons by nodemailer's code, for errors that affect all mails. */
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
  // RFC 5321, 4.2.1: 5yz is permanent, 4yz is temporary.
  if (responseCode >= 500) return { outcome: 'refused', reason: `it refuses this mail (${responseCode}).` }
  if (responseCode >= 400)
    return { outcome: 'postponed', reason: `it does not accept this mail now (${responseCode}).` }
  if (code === 'EENVELOPE' || code === 'EMESSAGE')
    return { outcome: 'refused', reason: 'it does not accept this mail.' }
  return { outcome: 'postponed', reason: `something went wrong (${code || 'unknown reason'}).` }
}

/** A more precise reason for errors that the operator can fix. */
function describeCause(error: unknown): string | undefined {
  const { message, cause } = error as { message?: string; cause?: { code?: string } }
  const text = `${cause?.code ?? ''} ${message ?? ''}`
  if (/ECONNREFUSED/.test(text)) return 'the connection was refused.'
  return /certificate|CERT|altnames/i.test(text)
    ? 'its certificate is not trusted. Give the authority with: coffer config set mail.ca @ca.pem'
    : undefined
}
