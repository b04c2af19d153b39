/** Writes a tenant down as a seed. */
import { omitUndefined } from '../../domain/omit-undefined.js'
import type {
  ApplicationRecord,
  FormulaRecord,
  Kind,
  ProxyRecord,
  TokenRecord,
} from '../../domain/records/records.js'
import { createDraw, replaceData } from '../../domain/token/synthetic.js'
import type { TokenTypeName } from '../../domain/token/token-types.js'
import { CofferError } from '../../errors.js'
import { type Context, operation } from '../../framework/operation.js'
import { anyJson } from '../../framework/output.js'
import { closedInput } from '../../framework/schema.js'
import { readAll } from '../../storage/pages.js'
import { recordAccess } from '../token/token-access.js'
import { viewToken } from '../token/token-attributes.js'
import { MOST_SEEDED_TOKENS } from './seed-schema.js'

export const exportSeed = operation({
  name: 'seed export',
  audience: 'owner',
  summary: 'Write your tenant down as a seed, without any key.',
  details:
    'Data is masked, and then often not valid in a seed that is applied. With --synthesize there is made-up data of the\n' +
    'same type and shape instead, with --reveal the data itself, and the configuration of reactors and proxies.',
  input: closedInput([], {
    synthesize: { type: 'boolean', description: 'Put made-up data in the place of data.' },
  }),
  output: anyJson('A seed.'),
  isRevealable: true,
  log: { operation: 'read', message: 'Seed exported' },
  examples: ['coffer seed export --synthesize'],
  async run(context, { synthesize = false }) {
    const { store, caller } = context
    const { total } = await store.find('token', caller.tenant, { page: 1, size: 1 })
    if (total > MOST_SEEDED_TOKENS)
      throw new CofferError(
        'unprocessable',
        `A seed has at most ${MOST_SEEDED_TOKENS} tokens; here are ${total}.`,
      )
    // Oldest first, so that they are created in the same order.
    const read = async <K extends Kind>(kind: K) => (await readAll(store, kind, caller.tenant)).reverse()
    const [applications, formulas] = [await read('application'), await read('formula')]
    const tokens: unknown[] = []
    for (const record of await read('token')) tokens.push(await exportToken(context, record, synthesize))
    const reveals = !synthesize && caller.transform('token:read', { containers: ['/'] }) === 'reveal'
    const { name, settings } = await context.tenant()
    return {
      name,
      settings,
      applications: applications.map(exportApplication),
      formulas: formulas.map(exportFormula),
      tokens,
      associations: (await read('association')).map(({ parent_id, child_id }) => ({ parent_id, child_id })),
      reactors: await exportReactors(context, await read('reactor'), applications, reveals),
      proxies: (await read('proxy')).map((proxy) => exportProxy(proxy, applications, reveals)),
      members: await exportMembers(context),
      invitations: (await read('invitation')).map(({ email, role }) => omitUndefined({ email, role })),
    }
  },
})

async function exportToken(context: Context, record: TokenRecord, synthesize: boolean): Promise<object> {
  const transform = synthesize ? 'redact' : (context.caller.transform('token:read', record) ?? 'redact')
  await recordAccess(context, record, { operation: 'read', message: 'Token exported' }, transform)
  const data = synthesize
    ? replaceData(record.type as TokenTypeName, record.data, createDraw(record.id))
    : viewToken(record, transform).data
  const { id, type, mask, containers, metadata, search_indexes, fingerprint_expression, expires_at } = record
  const { deduplicate_token } = record
  const rest = { metadata, search_indexes, fingerprint_expression, expires_at, deduplicate_token }
  return { id, type, mask: mask ?? null, containers, ...omitUndefined({ data, ...rest }) }
}

function exportApplication({ name, type, permissions, rules, expires_at }: ApplicationRecord): object {
  return { name, type, permissions, rules, ...omitUndefined({ expires_at }) }
}

function exportFormula(record: FormulaRecord): object {
  const { id, status, created_by, created_at, modified_by, modified_at, ...formula } = record
  return formula
}

async function exportReactors(
  { store, caller }: Context,
  reactors: Awaited<ReturnType<typeof readAll<'reactor'>>>,
  applications: readonly ApplicationRecord[],
  reveals: boolean,
): Promise<object[]> {
  const formulas = [
    ...(await readAll(store, 'formula', caller.tenant)),
    ...(await readAll(store, 'formula', 0)),
  ]
  return reactors.map(({ name, formula_id, application_id, configuration, code, runtime }) => {
    const application = applications.find(({ id }) => id === application_id)?.name
    const shown = showConfiguration(configuration, reveals)
    const formula = formulas.find(({ id }) => id === formula_id)?.name
    return { name, ...omitUndefined({ formula, code, runtime, application }), configuration: shown }
  })
}

function exportProxy(proxy: ProxyRecord, applications: readonly ApplicationRecord[], reveals: boolean) {
  const { name, destination_url, require_auth, disable_detokenization, application_id } = proxy
  const { configuration, request_transforms, response_transforms } = proxy
  const application = applications.find(({ id }) => id === application_id)?.name
  return {
    name,
    destination_url,
    ...omitUndefined({ application }),
    configuration: showConfiguration(configuration, reveals),
    require_auth,
    disable_detokenization,
    request_transforms,
    response_transforms,
  }
}

function showConfiguration(configuration: Readonly<Record<string, string>>, reveals: boolean): object {
  if (reveals) return configuration
  return Object.fromEntries(Object.keys(configuration).map((key) => [key, 'REDACTED']))
}

async function exportMembers({ store, caller }: Context): Promise<object[]> {
  const members: object[] = []
  for (const { user_id, role } of (await readAll(store, 'member', caller.tenant)).reverse()) {
    const user = await store.get('user', 0, user_id)
    if (role === 'OWNER' || user?.email === undefined) continue
    const { email, first_name, last_name } = user
    members.push({ email, role, ...omitUndefined({ first_name, last_name }) })
  }
  return members
}
