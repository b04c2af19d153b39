/**
 * A real mail server for tests. The server keeps the mail that it receives, and refuses the commands that the test
 * selects.
 */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { CERTIFICATE, PRIVATE_KEY } from '../http/certificate.js'

export interface Received {
  from: string
  to: string[]
  /** The received message with its headers. */
  text: string
  user?: string
  isSecure: boolean
}

export interface MailServerSettings {
  /**
   * If true, the server uses TLS from the first byte. If false, the server offers STARTTLS, unless `isPlain` is true.
   */
  secure?: boolean
  isPlain?: boolean
  /** The account that may send mail. By default, everybody may send mail. */
  user?: { name: string; password: string }
  /**
   * The server calls this function for each connection. The server sends its greeting when the promise of the function
   * resolves.
   */
  greet?(): Promise<void>
  /** Returns the code with which the server refuses a recipient, or undefined to accept the recipient. */
  refuse?(recipient: string): number | undefined
}

export async function startMailServer(settings: MailServerSettings = {}) {
  const { secure = false, isPlain = false, user, greet, refuse } = settings
  const received: Received[] = []
  const passwords: string[] = []
  let connections = 0
  let tell = () => {}
  const disabled = [...(isPlain ? ['STARTTLS'] : []), ...(user === undefined ? ['AUTH'] : [])]
  const options: SMTPServerOptions = {
    secure,
    key: PRIVATE_KEY,
    cert: CERTIFICATE,
    disabledCommands: disabled,
    authOptional: user === undefined,
    logger: false,
    onConnect: (_, done) => {
      connections++
      const greeting = greet?.() ?? Promise.resolve()
      greeting.then(() => done(), done)
    },
    onAuth: ({ username = '', password = '' }, _, done) => {
      passwords.push(password ?? '')
      if (username === user?.name && password === user.password) done(null, { user: username })
      else done(new Error('Invalid username or password'))
    },
    onRcptTo: ({ address }, _, done) => {
      const code = refuse?.(address)
      done(code === undefined ? null : Object.assign(new Error('not taken'), { responseCode: code }))
    },
    onData: (stream, { envelope, user: name, secure: isSecure }, done) => {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const { mailFrom, rcptTo } = envelope
        received.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          text: Buffer.concat(chunks).toString('utf8'),
          isSecure,
          ...(name === undefined ? {} : { user: String(name) }),
        })
        done()
        tell()
      })
    },
  }
  const server = new SMTPServer(options)
  // Some tests close the client in the middle of a command.
  server.on('error', () => {})
  server.listen(0, 'localhost')
  await once(server.server, 'listening')
  return {
    port: (server.server.address() as AddressInfo).port,
    received,
    /** The password of each login attempt. */
    passwords,
    /** Returns the number of connections so far. */
    connections: () => connections,
    waitFor: async (count: number) => {
      while (received.length < count)
        await new Promise<void>((resolve) => {
          tell = resolve
        })
    },
    close: () => new Promise<void>((resolve) => server.close(resolve)),
  }
}

/** Returns a header of a message, with its folded lines joined. */
export function headerOf({ text }: Received, name: string): string | undefined {
  const head = text.slice(0, text.indexOf('\r\n\r\n')).replaceAll(/\r\n[ \t]+/g, ' ')
  const line = head.split('\r\n').find((each) => each.toLowerCase().startsWith(`${name.toLowerCase()}: `))
  return line?.slice(name.length + 2)
}

/** Returns the decoded text of a quoted-printable body. The function returns any other body unchanged. */
export function decodeBody({ text }: Received): string {
  return Buffer.from(
    text
      .replaceAll('=\r\n', '')
      .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  ).toString('utf8')
}
