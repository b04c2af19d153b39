/**
 * The certificates of merchants of a wallet. Coffer does not decrypt payloads, so it checks only the outer form of the
 * PKCS#12 files, and stores only a fingerprint of each file.
 */
import { omitUndefined } from '../../domain/omit-undefined.js'
import { addError, collect, refuseErrors } from '../../domain/property-errors.js'
import type { Wallet, WalletCertificateRecord } from '../../domain/records/wallet-record.js'
import { CofferError, type PropertyErrors } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { requires } from '../../framework/declaration.js'
import { change, query } from '../../framework/operation.js'
import { component, date, text, uuid } from '../../framework/output.js'
import { inputSchema } from '../../framework/schema.js'
import { requireMerchant } from './merchants.js'
import { WALLET_NAMES } from './wallet-card.js'

const MAX_PASSWORD = 1024

const FILE = ' certificate with its private key: a PKCS#12 file as base64. It is checked and not stored.'
const secret = { type: 'string', sensitive: true } as const
const data = (which: string) => ({ ...secret, description: `The ${which}${FILE}` }) as const
const password = (which: string) =>
  ({
    ...secret,
    maxLength: MAX_PASSWORD,
    description: `The password of the ${which} file. It is not used and not stored.`,
  }) as const

export const merchantFile = {
  merchant_certificate_data: data('merchant'),
  merchant_certificate_password: password('merchant'),
} as const

export const processorFile = {
  payment_processor_certificate_data: data('payment processor'),
  payment_processor_certificate_password: password('payment processor'),
} as const

export const merchantOfCertificate = { type: 'string', description: 'The id of the merchant.' } as const

const FINGERPRINT = 'The SHA-256 digest of the PKCS#12 file, in hexadecimal.'

const certificateOutput = component('WalletCertificate', ['id', 'domain', 'created_at'], {
  id: uuid,
  tenant_id: uuid,
  'domain?': text,
  'merchant_certificate_fingerprint?': { ...text, description: FINGERPRINT },
  'payment_processor_certificate_fingerprint?': { ...text, description: FINGERPRINT },
  created_by: uuid,
  created_at: date,
})

type Fingerprints = Pick<
  WalletCertificateRecord,
  'merchant_certificate_fingerprint' | 'payment_processor_certificate_fingerprint'
>
type Files = { [Name in keyof (typeof merchantFile & typeof processorFile)]?: string | undefined }

/** Checks the form of the files. @throws CofferError `validation` */
export async function fingerprintFiles(files: Files): Promise<Fingerprints> {
  const { readCertificateFile } = await import('../../domain/wallets/certificate-file.js')
  const errors: PropertyErrors = {}
  const fingerprint = async (name: 'merchant' | 'payment_processor') => {
    const { [`${name}_certificate_data` as const]: text, [`${name}_certificate_password` as const]: given } =
      files
    if (text === undefined) {
      if (given !== undefined) addError(errors, `${name}_certificate_data`, 'is required with the password')
      return undefined
    }
    const bytes = collect(errors, `${name}_certificate_data`, () => readCertificateFile(text))
    if (bytes === undefined) return undefined
    return Buffer.from(await crypto.subtle.digest('SHA-256', bytes)).toString('hex')
  }
  const merchant_certificate_fingerprint = await fingerprint('merchant')
  const payment_processor_certificate_fingerprint = await fingerprint('payment_processor')
  refuseErrors(errors)
  return omitUndefined({ merchant_certificate_fingerprint, payment_processor_certificate_fingerprint })
}

/** `createDeclaration` contains only the parts of the operation `create` that the wallets share. */
export function declareCertificates<const W extends Wallet>(wallet: W) {
  const title = WALLET_NAMES[wallet]
  const noun = `${wallet}-pay certificate` as const
  const path = `/${wallet}-pay/merchant-registration/{merchant_id}/certificates` as const
  const entity = `${wallet}_pay_certificate` as const
  const access = requires(`${wallet}-pay:manage`)
  const log = <const O extends 'create' | 'read' | 'delete'>(operation: O, done: string) => ({
    operation,
    message: `${title} certificate ${done}`,
  })
  const byId = inputSchema(['merchant_id', 'id'], {
    merchant_id: merchantOfCertificate,
    id: { type: 'string', description: 'The id of the certificates.' },
  })
  const toExample = (verb: string, rest = '') =>
    `M=$(coffer ${wallet}-pay merchant create --merchant-identifier merchant.com.example -o id) && ` +
    `coffer ${noun} ${verb} "$M" "$(${exampleOf(wallet, '"$M"')} -o id)"${rest}`
  return {
    createDeclaration: {
      name: `${noun} create`,
      access,
      route: `POST ${path}`,
      http: { status: 201 },
      log: log('create', 'registered'),
      output: certificateOutput,
      examples: [
        `M=$(coffer ${wallet}-pay merchant create --merchant-identifier merchant.com.example -o id) && ${exampleOf(wallet, '"$M"')}`,
      ],
    } as const,

    add: async (context: Context, merchant_id: string, attributes: Fingerprints & { domain?: string }) => {
      const { store, caller } = context
      await requireMerchant(context, wallet, merchant_id)
      const record: WalletCertificateRecord = {
        id: context.createUuid(),
        tenant_id: (await context.tenant()).id,
        wallet,
        merchant_id,
        ...attributes,
        created_by: caller.actor.id,
        created_at: context.date,
      }
      await store.insert('wallet_certificate', caller.tenant, record, { fresh: true })
      context.audit.record(entity, record.id)
      return viewCertificate(record)
    },

    get: query({
      name: `${noun} get`,
      summary: 'Get the fingerprints of the certificates with this id.',
      access,
      route: `GET ${path}/{id}`,
      log: log('read', 'retrieved'),
      input: byId,
      output: certificateOutput,
      examples: [toExample('get')],
      async run(context, { merchant_id, id }) {
        const record = await requireCertificate(context, wallet, merchant_id, id)
        context.audit.record(entity, id)
        return viewCertificate(record)
      },
    }),

    delete: change({
      name: `${noun} delete`,
      summary: 'Delete certificates of a merchant permanently.',
      access,
      route: `DELETE ${path}/{id}`,
      log: log('delete', 'deleted'),
      input: byId,
      cli: { confirmation: 'This deletes the certificates of merchant' },
      examples: [toExample('delete', ' --yes')],
      async run(context, { merchant_id, id }) {
        await requireCertificate(context, wallet, merchant_id, id)
        await context.store.remove('wallet_certificate', context.caller.tenant, id)
        context.audit.record(entity, id)
        return undefined
      },
    }),
  }
}

/** The smallest text that has the form of a PKCS#12 file. */
const SMALLEST_FILE = 'MAMCAQM='

/** The file and the password are not arguments, because other users of the machine could see arguments. */
function exampleOf(wallet: Wallet, merchant: string): string {
  const name = wallet === 'apple' ? 'payment_processor' : 'merchant'
  const body = { [`${name}_certificate_data`]: SMALLEST_FILE, [`${name}_certificate_password`]: 'made up' }
  return `echo '${JSON.stringify(body)}' | coffer ${wallet}-pay certificate create ${merchant}`
}

function viewCertificate({ wallet: _, merchant_id: __, ...rest }: WalletCertificateRecord) {
  return rest
}

async function requireCertificate(
  context: Context,
  wallet: Wallet,
  merchant_id: string,
  id: string,
): Promise<WalletCertificateRecord> {
  const record = await context.store.get('wallet_certificate', context.caller.tenant, id)
  if (record?.wallet === wallet && record.merchant_id === merchant_id) return record
  throw new CofferError('not_found', `There is no certificate of ${WALLET_NAMES[wallet]} with this id.`)
}
