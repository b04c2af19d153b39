/** A page passes a session to the wallet. Coffer makes up sessions, and sends no request to the wallet. */
import { CofferError } from '../../errors.js'
import { requires } from '../../framework/declaration.js'
import { change } from '../../framework/operation.js'
import { count, object, text } from '../../framework/output.js'
import { inputSchema, textOf } from '../../framework/schema.js'

const MAX_DISPLAY_NAME = 64
const MAX_URL = 2000
const SESSION_MS = 60 * 60 * 1000
const SIGNATURE_BYTES = 32

const domain = { type: 'string', description: 'The registered domain of the page.' } as const

export const createSession = change({
  name: 'apple-pay session',
  summary: 'Make up a session for the wallet on a page of a registered domain.',
  access: requires('apple-pay:session'),
  route: 'POST /apple-pay/session',
  log: { operation: 'use', message: 'Apple Pay session created' },
  input: inputSchema(['display_name', 'domain'], {
    display_name: textOf(MAX_DISPLAY_NAME, 'The name of the store.'),
    domain,
    validation_url: textOf(MAX_URL, 'The address that the wallet names. No request is sent to it.'),
    merchant_registration_id: {
      type: 'string',
      description:
        'The id of a merchant that is registered for Apple Pay. By default, the id of the tenant is the merchant identifier.',
    },
  }),
  output: object({
    epochTimestamp: count,
    expiresAt: count,
    merchantSessionIdentifier: text,
    nonce: text,
    merchantIdentifier: text,
    domainName: text,
    displayName: text,
    signature: text,
  }),
  examples: [
    'coffer apple-pay domain register shop.example.com > /dev/null && coffer apple-pay session --domain shop.example.com --display-name Shop',
  ],
  async run(context, { display_name, domain, merchant_registration_id }) {
    const { isRegistered } = await import('./domain-set.js')
    const { requireRegistration } = await import('../wallets/wallet-card.js')
    if (!(await isRegistered(context, domain)))
      throw new CofferError(
        'unprocessable',
        'This domain is not registered for Apple Pay. Register it: coffer apple-pay domain register DOMAIN',
      )
    const merchant = await requireRegistration(context, 'apple', merchant_registration_id)
    const { id } = await context.tenant()
    context.audit.record('tenant', id)
    const draw = () => Buffer.from(context.random.bytes(SIGNATURE_BYTES)).toString('hex')
    return {
      epochTimestamp: context.now,
      expiresAt: context.now + SESSION_MS,
      merchantSessionIdentifier: draw(),
      nonce: draw().slice(0, 8),
      merchantIdentifier: merchant?.merchant_identifier ?? id,
      domainName: domain,
      displayName: display_name,
      signature: draw(),
    }
  },
})
