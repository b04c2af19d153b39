import { mapScalars } from '../../domain/json/find-texts.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type {
  FormulaRecord,
  ProxyRecord,
  ReactorRecord,
  RecordOf,
  TokenRecord,
} from '../../domain/records/records.js'
import { createDraw, replaceData } from '../../domain/token/synthetic.js'
import type { TokenTypeName } from '../../domain/token/token-types.js'
import { CofferError } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { owner } from '../../framework/declaration.js'
import { query } from '../../framework/operation.js'
import { anyJson } from '../../framework/output.js'
import { closedInput } from '../../framework/schema.js'
import { readAll } from '../../storage/store.js'
import { VAULT_TENANT } from '../formula/noun.js'
import { runningProxy } from '../proxy/proxy-version.js'
import { runningReactor } from '../reactor/reactor.js'
import { logTokenUse } from '../token/token-access.js'
import { exportedAttributes, viewToken } from '../token/token-attributes.js'
import { UUID } from './references.js'
import { attributesOf } from './seed-items.js'
import { type ListName, MAX_SEEDED_TOKENS } from './seed-schema.js'

export const exportSeed = query({
  name: 'seed export',
  access: owner,
  summary: 'Export your tenant as a seed, without keys of applications.',
  details:
    'Data is masked, so a token of the seed is often refused when the seed is applied. With --synthesize, the seed has\n' +
    'made-up data of the same type and shape. With --reveal, the seed has the data itself, the configuration of reactors\n' +
    'and proxies, and the keys of proxies.',
  input: closedInput([], {
    synthesize: { type: 'boolean', description: 'Replace the data with made-up data.' },
  }),
  output: anyJson('A seed.'),
  plaintext: 'masked',
  log: { operation: 'read', message: 'Seed exported' },
  examples: ['coffer seed export --synthesize'],
  async run(context, { synthesize = false }) {
    const { store, caller } = context
    const { total } = await store.find('token', caller.tenant, { page: 1, size: 1 })
    if (total > MAX_SEEDED_TOKENS)
      throw new CofferError('unprocessable', `A seed has at most ${MAX_SEEDED_TOKENS} tokens, not ${total}.`)
    const isRevealed = !synthesize && caller.transform('token:read', { containers: ['/'] }) === 'reveal'
    const references = await createReferences(context)
    const show = (record: object, list: ListName) =>
      showRecord(record as Item, { list, isRevealed, references })
    const read = async (kind: keyof RecordOf, list: ListName) =>
      (await readInOrder(context, kind)).map((record) =>
        show(runningVersion(kind, record, context.now), list),
      )
    const { name, settings } = await context.tenant()
    const tokens: unknown[] = []
    for (const record of await readInOrder(context, 'token'))
      tokens.push(await exportToken(context, record, synthesize))
    const official = await findOfficial(context)
    return {
      name,
      settings,
      applications: await read('application', 'applications'),
      formulas: [
        ...official.map((formula) => show(formula, 'formulas')),
        ...(await read('formula', 'formulas')),
      ],
      tokens,
      associations: await read('association', 'associations'),
      reactors: await read('reactor', 'reactors'),
      proxies: await read('proxy', 'proxies'),
      // A webhook with a listener is not exported, because the webhook is deleted when the listener ends.
      webhooks: (await readInOrder(context, 'webhook'))
        .filter(({ listener }) => listener === undefined)
        .map((record) => show(record, 'webhooks')),
      members: await exportMembers(context),
      invitations: await read('invitation', 'invitations'),
    }
  },
})

/** Returns the record with the version that runs now. The build of a newer version may have ended meanwhile. */
function runningVersion(kind: keyof RecordOf, record: object, now: number): object {
  if (kind === 'reactor') return runningReactor(record as ReactorRecord, now)
  return kind === 'proxy' ? runningProxy(record as ProxyRecord, now) : record
}

type Item = Readonly<Record<string, unknown>>

interface References {
  /** Returns the name of the record with this id, or `{ id }` if the name is not unique. */
  objectOf(id: unknown): unknown
  /** Returns the name of the reactor with this id, or the id if the name is not unique. */
  nameOf(id: unknown): unknown
}

/** Returns the oldest record first, so that the seed creates the records in their original order. */
async function readInOrder<K extends keyof RecordOf>({ store, caller }: Context, kind: K) {
  return (await readAll(store, kind, caller.tenant)).reverse()
}

async function createReferences({ store, caller }: Context): Promise<References> {
  const found = new Map<unknown, { id: string; name: string; isUnique: boolean }>()
  for (const kind of ['application', 'formula', 'reactor'] as const) {
    const records = await readAll(store, kind, caller.tenant)
    const official = kind === 'formula' ? await readAll(store, kind, VAULT_TENANT) : []
    const uses = new Map<string, number>()
    for (const { name } of [...records, ...official]) uses.set(name, (uses.get(name) ?? 0) + 1)
    for (const { id, name } of [...records, ...official])
      found.set(id, { id, name, isUnique: uses.get(name) === 1 && !UUID.test(name) })
  }
  return {
    objectOf: (wanted) => {
      const { id, name, isUnique } = found.get(wanted) ?? {}
      return id === undefined ? undefined : isUnique ? name : { id }
    },
    nameOf: (wanted) => {
      const { id, name, isUnique } = found.get(wanted) ?? {}
      return isUnique ? name : id
    },
  }
}

function showRecord(
  record: Item,
  { list, isRevealed, references }: { list: ListName; isRevealed: boolean; references: References },
): object {
  const hidesValues = !isRevealed && (list === 'reactors' || list === 'proxies')
  const values: Item = {
    ...record,
    application: references.objectOf(record.application_id),
    formula: references.objectOf(record.formula_id),
    request_reactor_id: references.nameOf(record.request_reactor_id),
    response_reactor_id: references.nameOf(record.response_reactor_id),
    configuration: hidesValues ? mapScalars(record.configuration, () => 'REDACTED') : record.configuration,
    key: hidesValues ? undefined : record.key,
  }
  return omitUndefined(Object.fromEntries(attributesOf(list).map((name) => [name, values[name]])) as object)
}

async function findOfficial({ store, caller }: Context): Promise<FormulaRecord[]> {
  const used = new Set((await readAll(store, 'reactor', caller.tenant)).map(({ formula_id }) => formula_id))
  return (await readAll(store, 'formula', VAULT_TENANT)).reverse().filter(({ id }) => used.has(id))
}

async function exportToken(context: Context, record: TokenRecord, synthesize: boolean): Promise<object> {
  const transform = synthesize ? 'redact' : (context.caller.transform('token:read', record) ?? 'redact')
  await logTokenUse(context, record, { operation: 'read', message: 'Token exported' }, transform)
  const data = synthesize
    ? replaceData(record.type as TokenTypeName, record.data, createDraw(record.id))
    : viewToken(record, transform).data
  const stored: Record<string, unknown> = { ...record, mask: record.mask ?? null, data }
  return omitUndefined(Object.fromEntries(exportedAttributes.map((name) => [name, stored[name]])))
}

async function exportMembers({ store, caller }: Context): Promise<object[]> {
  const members: object[] = []
  for (const { user_id, role } of (await readAll(store, 'member', caller.tenant)).reverse()) {
    const { email, first_name, last_name } = (await store.get('user', 0, user_id)) ?? {}
    if (role !== 'OWNER' && email !== undefined)
      members.push(omitUndefined({ email, role, first_name, last_name }))
  }
  return members
}
