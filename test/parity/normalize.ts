/** Makes the answers of several interfaces comparable. */
import type { Answer } from '../../src/client/conform/cases.js'

/**
 * Replaces all random and measured values, so that equivalent answers become equal. A value that the case has saved is
 * replaced by the name of the saved value. Other ids, keys and fingerprints are replaced by numbers in the order of
 * their appearance. All success statuses become equal, because `checkAnswer` has already checked the exact status.
 */
export function normalize(answers: readonly Answer[], saved: ReadonlyMap<string, unknown>): unknown {
  const names = new Map<string, string>()
  const drawn =
    /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00|key_(?:run_)?[1-9A-HJ-NP-Za-km-z]{22}|(?<=BEGIN PUBLIC KEY-----\\n)[A-Za-z0-9+/]{43}=|(?<="key":")[1-9A-HJ-NP-Za-km-z]{22}|(?<="fingerprint":")[1-9A-HJ-NP-Za-km-z]{43,44}|(?<=\?secret=)[\w-]{43}|(?<="message_id":")[\w-]{32}|(?<="(?:merchantSessionIdentifier|nonce|signature)":")[0-9a-f]{8,64}/g
  // The number and the account of a network token depend on the key of the tenant. A cryptogram is random.
  const ofNetwork =
    /(?<="number":")\w{13,19}(?=","expiration_month":\d+,"expiration_year":\d+\},"network_token")|(?<="network_token":\{"bin":")\d{6,8}|(?<="network_token":\{"bin":"[^"]*","last4":")\d{4}|(?<="par":")[0-9A-Z]{29}|(?<="cryptogram":")[^"]{24}/g
  let text = JSON.stringify(answers.map(withoutReference))
  for (const [name, value] of saved) text = text.replaceAll(JSON.stringify(value), `"<${name}>"`)
  text = text.replaceAll(ofNetwork, '<network>').replaceAll(drawn, (found) => {
    if (/^\d{4}-\d\d-\d\dT/.test(found)) return '<date>'
    if (!names.has(found)) names.set(found, `<${names.size + 1}>`)
    return names.get(found)!
  })
  return JSON.parse(text)
}

function withoutReference({ status: answered, body, ...rest }: Answer): Answer {
  const status = answered !== 'done' && answered < 300 ? 'done' : answered
  if (typeof body !== 'object' || body === null || !('instance' in body)) return { status, body, ...rest }
  // Over HTTP, a 3-D Secure error has only the attributes that the service sends.
  if ('title' in body && String(body.title).startsWith('3DS Service')) {
    const { type: _, instance: __, ...told } = body as Record<string, unknown>
    return { status, body: told, ...rest }
  }
  return { status, body: { ...body, instance: '<reference>' } }
}
