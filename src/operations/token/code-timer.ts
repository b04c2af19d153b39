/**
 * Erases verification codes of cards. The record of a token or token intent contains the time when its code expires.
 * After that time, no read returns the code. A timer record expires at the same time, and the sweep then erases the
 * code.
 */
import type { CardCode, CodeTimerRecord, TokenRecord } from '../../domain/records/token-record.js'
import type { DraftCode } from '../../domain/token/token.js'
import type { Context } from '../../framework/context.js'
import { type EventTools, writeEntries } from '../../framework/events.js'
import type { Host } from '../../framework/host.js'
import type { Waiting } from '../../framework/ports/deliveries.js'
import type { StoreWriter } from '../../storage/store.js'
import { rewriteToken } from './rewrite-token.js'
import { entityTypeOf } from './token-attributes.js'

const HOUR_MS = 60 * 60 * 1000

type Holder = Pick<CodeTimerRecord, 'holder' | 'holder_id'>

type EraseTools = EventTools & Pick<Host, 'expressions'>

export async function startCode(
  context: Context,
  holder: Holder,
  { sets: _, ...rest }: DraftCode,
): Promise<CardCode> {
  const hours = Number.parseInt(await context.setting('cards.cvc_retention'), 10)
  // The setting is `never`.
  if (Number.isNaN(hours)) return rest
  return { ...(await startTimer(context, context.caller.tenant, holder, hours * HOUR_MS)), ...rest }
}

/** Keeps the expiry of a code that a change does not replace. */
export function keepCode(before: CardCode | undefined, { sets: _, ...rest }: DraftCode): CardCode {
  const { masked: __, ...time } = before ?? {}
  return { ...time, ...rest }
}

async function startTimer(
  { store, createUuid }: EventTools,
  tenant: number,
  holder: Holder,
  lastsMs: number,
): Promise<Required<Pick<CardCode, 'until' | 'timer'>>> {
  const id = createUuid()
  const options = { fresh: true, expires: store.now + lastsMs }
  await store.insert('code_timer', tenant, { id, ...holder }, options)
  return { until: store.codeTime + lastsMs, timer: id }
}

/** Removes the timer of a replaced or deleted code. The timer is missing if the sweep has removed it. */
export async function stopTimer(store: StoreWriter, tenant: number, code: CardCode | undefined) {
  const { timer } = code ?? {}
  if (timer !== undefined && (await store.get('code_timer', tenant, timer)) !== undefined)
    await store.remove('code_timer', tenant, timer)
}

/** Erases the code whose timer has expired. Returns the events to enqueue after the commit. */
export async function eraseCode(
  tools: EraseTools,
  tenant: number,
  { id, holder, holder_id }: CodeTimerRecord,
): Promise<Waiting[]> {
  const { store } = tools
  if ((await store.purge('code_timer', tenant, id)) === undefined) return []
  const record = await store.get(holder, tenant, holder_id)
  if (record === undefined) return []
  const { code } = record
  if (code === undefined) {
    // The store returns the record without its expired code, so writing this record erases the code.
    await rewriteToken(tools, tenant, record)
    return holder === 'token' ? storeExpiryEvent(tools, tenant, record) : []
  }
  if (code.timer === id && code.until !== undefined) {
    // If the timer has expired but the code has not, the vault was restored to an earlier state. A new timer then
    // starts with the time that remained for the code in that state.
    const renewed = await startTimer(tools, tenant, { holder, holder_id }, code.until - store.codeTime)
    await rewriteToken(tools, tenant, { ...record, code: { ...code, ...renewed } })
  }
  return []
}

/** Stores the event of an expired code. There is no log record, because no caller changed the token. */
async function storeExpiryEvent(tools: EventTools, tenant: number, token: TokenRecord): Promise<Waiting[]> {
  const owner = await tools.store.get('tenant', 0, String(tenant))
  if (owner === undefined) return []
  const { id } = token
  const event = { type: 'token.property.expired', about: { id, property_name: 'cvc' } } as const
  const entry = { type: entityTypeOf(token), id, event, actor: { type: 'system' } } as const
  return writeEntries(tools, owner, [entry], tools.createUuid())
}
