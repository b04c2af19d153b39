import { mapScalars } from '../../domain/json/find-texts.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { ProxyRecord, ReactorRecord, RecordOf, TokenRecord } from '../../domain/records/records.js'
import { createDraw, replaceData } from '../../domain/token/synthetic.js'
import type { TokenTypeName } from '../../domain/token/token-types.js'
import { CofferError } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { owner } from '../../framework/declaration.js'
import { query } from '../../framework/operation.js'
import { anyJson } from '../../framework/output.js'
import { closedInput } from '../../framework/schema.js'
import { readAll } from '../../storage/store.js'
import { runningProxy } from '../proxy/proxy-version.js'
import { runningReactor } from '../reactor/reactor.js'
import { logTokenUse } from '../token/token-access.js'
import { exportedAttributes, viewToken } from '../token/token-attributes.js'
import { applySeed, type ListName, MAX_SEEDED_TOKENS, seedSchema } from './apply-seed.js'

const exportSeed = query({
  name: 'seed export',
  access: owner,
  summary: 'Export your tenant as a seed, without any key.',
  details:
    'Data is masked, so it is often not valid when the seed is applied. With --synthesize, the seed has made-up data of the\n' +
    'same type and shape. With --reveal, it has the data itself, and the configuration of reactors and proxies.',
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
    const names = new Map<unknown, string>()
    for (const tenant of [0, caller.tenant])
      for (const kind of ['application', 'formula', 'reactor'] as const)
        for (const { id, name } of await readAll(store, kind, tenant)) names.set(id, name)
    // Oldest first, so that applying the seed creates the records in the original order.
    const read = async (kind: keyof RecordOf, list: ListName) =>
      (await readAll(store, kind, caller.tenant)).reverse().map((record) => {
        const given = runningVersion(kind, record, context.now)
        const { application_id, formula_id, configuration } = given
        const isHidden = !isRevealed && (kind === 'reactor' || kind === 'proxy')
        const values: Record<string, unknown> = {
          ...given,
          application: names.get(application_id),
          formula: names.get(formula_id),
          request_reactor_id: names.get(given.request_reactor_id),
          response_reactor_id: names.get(given.response_reactor_id),
          configuration: isHidden ? mapScalars(configuration, () => 'REDACTED') : configuration,
        }
        const attributes = Object.keys(seedSchema.properties[list].items.properties)
        return omitUndefined(Object.fromEntries(attributes.map((name) => [name, values[name]])) as object)
      })
    const { name, settings } = await context.tenant()
    const tokens: unknown[] = []
    for (const record of (await readAll(store, 'token', caller.tenant)).reverse())
      tokens.push(await exportToken(context, record, synthesize))
    return {
      name,
      settings,
      applications: await read('application', 'applications'),
      formulas: await read('formula', 'formulas'),
      tokens,
      associations: await read('association', 'associations'),
      reactors: await read('reactor', 'reactors'),
      proxies: await read('proxy', 'proxies'),
      members: await exportMembers(context),
      invitations: await read('invitation', 'invitations'),
    }
  },
})

/** A version of code that was being built may have become the one that runs. */
function runningVersion(
  kind: keyof RecordOf,
  record: unknown,
  now: number,
): Readonly<Record<string, unknown>> {
  const running =
    kind === 'reactor'
      ? runningReactor(record as ReactorRecord, now)
      : kind === 'proxy'
        ? runningProxy(record as ProxyRecord, now)
        : record
  return running as Readonly<Record<string, unknown>>
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

export const noun = {
  name: 'seed',
  summary: 'Load or export test data',
  operations: [applySeed, exportSeed],
}
