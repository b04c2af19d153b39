/** The states of network tokens, and the operations that depend on the state. */
import { formatDate } from '../../domain/dates.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { NetworkTokenStatus } from '../../domain/records/network-token-record.js'
import type { NetworkTokenRecord, TenantRecord } from '../../domain/records/records.js'
import { conflict, validationError } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { requires } from '../../framework/declaration.js'
import { type EventTools, writeEntries } from '../../framework/events.js'
import { change, query } from '../../framework/operation.js'
import { object, text } from '../../framework/output.js'
import type { Waiting } from '../../framework/ports/deliveries.js'
import { viewNetworkToken } from './attributes.js'
import { CREATE_EXAMPLE } from './examples.js'
import { KIND, networkTokens } from './records.js'

const CRYPTOGRAM_BYTES = 16
/** The electronic commerce indicator (ECI) of a payment without authentication. */
const ECI = '07'

export function requireActive({ status }: NetworkTokenRecord): void {
  if (status !== 'active') throw validationError(`The network token is ${status}, so it cannot be used.`)
}

export const createCryptogram = query({
  name: 'network-token cryptogram',
  summary: 'Create a cryptogram for one payment with an active network token.',
  details: 'Coffer stores no cryptogram.',
  access: requires('network-token:cryptogram'),
  route: 'POST /network-tokens/{id}/cryptogram',
  http: { ignoresIdempotencyKey: true },
  plaintext: 'refused',
  log: { operation: 'use', message: 'Network token cryptogram created' },
  input: networkTokens.byId,
  output: object({ cryptogram: text, eci: text }),
  examples: [`coffer network-token cryptogram ${CREATE_EXAMPLE}`],
  async run(context, { id }) {
    const record = await networkTokens.require(context, id)
    requireActive(record)
    context.audit.record(KIND, id)
    context.audit.emit({ type: 'network-token.cryptogram.created', about: { id } })
    return { cryptogram: Buffer.from(context.random.bytes(CRYPTOGRAM_BYTES)).toString('base64'), eci: ECI }
  },
})

export const suspendNetworkToken = change({
  name: 'network-token suspend',
  summary: 'Suspend an active network token, so that it cannot be used.',
  access: requires('network-token:suspend'),
  route: 'PUT /network-tokens/{id}/suspend',
  plaintext: 'masked',
  log: { operation: 'update', message: 'Network token suspended' },
  input: networkTokens.byId,
  output: networkTokens.createDeclaration.output,
  examples: [`coffer network-token suspend ${CREATE_EXAMPLE}`],
  run: (context, { id }) => changeStatus(context, id, 'active', 'suspended'),
})

export const resumeNetworkToken = change({
  name: 'network-token resume',
  summary: 'Make a suspended network token active again.',
  access: requires('network-token:resume'),
  route: 'PUT /network-tokens/{id}/resume',
  plaintext: 'masked',
  log: { operation: 'update', message: 'Network token resumed' },
  input: networkTokens.byId,
  output: networkTokens.createDeclaration.output,
  examples: [`coffer network-token resume "$(coffer network-token suspend ${CREATE_EXAMPLE} -o id)"`],
  run: (context, { id }) => changeStatus(context, id, 'suspended', 'active'),
})

async function changeStatus(context: Context, id: string, from: NetworkTokenStatus, to: NetworkTokenStatus) {
  const before = await networkTokens.require(context, id)
  if (before.status !== from) throw conflict(`The network token is ${before.status}, but it must be ${from}.`)
  return viewNetworkToken(await networkTokens.change(context, before, { status: to }), 'mask')
}

/** Simulates a change by the network. In the log and in the event, the actor is the system. */
export async function changeByNetwork(context: Context, id: string, status: NetworkTokenStatus) {
  const before = await networkTokens.require(context, id)
  const tenant = await context.tenant()
  const { record, waiting } = await tellChange(context, tenant, before, status)
  await context.store.replace(KIND, context.caller.tenant, record)
  context.enqueue(waiting)
  return viewNetworkToken(record, 'mask')
}

/** Returns the record to store, and the events to enqueue after the commit. */
export async function tellChange(
  tools: EventTools,
  tenant: TenantRecord,
  before: NetworkTokenRecord,
  status: NetworkTokenStatus,
): Promise<{ record: NetworkTokenRecord; waiting: Waiting[] }> {
  const { modified_by: _, ...kept } = before
  const ended = status === 'inactive' ? { state: undefined, due_at: undefined } : {}
  const changed = { ...kept, ...ended, status, modified_at: formatDate(tools.store.now) }
  const record = omitUndefined(changed) as NetworkTokenRecord
  const as = { operation: 'update', message: `Network token became ${status}` } as const
  const event = { type: 'network-token.updated', about: record } as const
  const entry = { type: KIND, id: record.id, as, event, actor: { type: 'system' } } as const
  return { record, waiting: await writeEntries(tools, tenant, [entry], tools.createUuid()) }
}
