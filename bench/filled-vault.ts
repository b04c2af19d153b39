/**
 * Vaults of any size for the benchmarks. To save time, the benchmarks write these vaults without performing operations.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { containerSet, containerSetId } from '../src/domain/access/container.js'
import { formatDate } from '../src/domain/dates.js'
import { Budget } from '../src/domain/expression/budget.js'
import type { LogRecord, TokenRecord } from '../src/domain/records/records.js'
import { prepareToken, type TokenDraft } from '../src/domain/token/token.js'
import type { App } from '../src/vault/app.js'
import { createVault, openVault, type VaultLocation } from '../src/vault/open.js'
import { makeToken } from './token-body.js'

/** With this number of customers, each customer has enough tokens for a full page, even in a vault of 1,000 tokens. */
export const CUSTOMERS = 50
/**
 * The number of tokens in one unit of work. With their log records, these tokens are about as large as a unit of work
 * of `coffer token import`.
 */
export const UNIT_TOKENS = 8192

export interface FilledVault {
  directory: string
  keyFile: string
  keyText: string
}

/** A token in the form in which the vault stores it, and the log record of its creation. */
export interface Prepared {
  record: TokenRecord
  draft: TokenDraft
  log: LogRecord
}

export function placeOf(directory: string, role: 'command' | 'server'): VaultLocation {
  return { directory, pid: process.pid, notice: () => {}, role }
}

export function tokenId(serial: number): string {
  return `bench-${serial}`
}

export function makeCustomerToken(serial: number) {
  return { ...makeToken(serial), metadata: { customer: String(serial % CUSTOMERS) } }
}

/** Creates a vault with `tokens` tokens of one kilobyte and, for each token, the log record of its creation. */
export async function createFilledVault(parent: string, tokens: number): Promise<FilledVault> {
  const directory = join(parent, `vault-${tokens}`)
  const keyFile = join(parent, `vault-${tokens}.key`)
  let keyText = ''
  mkdirSync(parent, { recursive: true })
  const save = async (_: string, text: string) => {
    keyText = text
    writeFileSync(keyFile, text, { mode: 0o600 })
  }
  const first = await createVault(placeOf(directory, 'server'), 'bench', { kind: 'key-file', save })
  await first.close()
  const vault = { directory, keyFile, keyText }
  const app = await openFilledVault(vault, 'server')
  for (let done = 0; done < tokens; done += UNIT_TOKENS) {
    await writeUnit(app, await prepareUnit(app, done, Math.min(UNIT_TOKENS, tokens - done)))
  }
  // Without this compaction, the first measured commands would merge the tables of the store.
  await app.maintenance().compact()
  await app.close()
  return vault
}

export function openFilledVault(
  { directory, keyText }: FilledVault,
  role: 'command' | 'server',
): Promise<App> {
  return openVault(placeOf(directory, role), async () => ({ kind: 'key-file', text: keyText }))
}

/** Validates and renders tokens without writing them. */
export async function prepareUnit(app: App, from: number, count: number): Promise<Prepared[]> {
  const { id: tenantId, owner_id: owner } = await app.tenant()
  const rules = { expressions: await app.expressions(), now: Date.now() }
  const created = formatDate(rules.now)
  const prepared: Prepared[] = []
  for (let serial = from; serial < from + count; serial++) {
    const draft = await prepareToken(makeCustomerToken(serial), { ...rules, budget: new Budget() })
    const id = tokenId(serial)
    prepared.push({
      draft,
      record: {
        ...draft.record,
        id,
        tenant_id: tenantId,
        fingerprint: '',
        created_by: owner,
        created_at: created,
      },
      log: {
        id: crypto.randomUUID(),
        tenant_id: tenantId,
        actor_id: owner,
        actor_type: 'user',
        entity_type: 'token',
        entity_id: id,
        operation: 'create',
        message: 'Token created',
        created_at: created,
        trace_id: 'bench',
      },
    })
  }
  return prepared
}

/** In one unit of work, computes fingerprints and digests of the tokens, encrypts the tokens and writes them. */
export async function writeUnit(app: App, unit: readonly Prepared[]): Promise<void> {
  const { number } = await app.tenant()
  await app.store.write(async (writer) => {
    for (const { record, draft, log } of unit) {
      const id = containerSetId(record.containers)
      if ((await writer.get('containers', number, id)) === undefined)
        await writer.insert('containers', number, { id, containers: containerSet(record.containers) })
      const fingerprint = await writer.fingerprint(number, draft.fingerprintText)
      const search = draft.searchValues
      await writer.insert('token', number, { ...record, fingerprint }, { search, fresh: true })
      await writer.log(number, log, writer.now)
    }
  })
}
