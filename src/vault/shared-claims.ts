/** A claim in a shared store is a record with a lease. If the server that renews the lease dies, the lease expires. */
import type { AnswerRecord } from '../domain/records/answer-record.js'
import type { Host } from '../framework/host.js'
import { type Claim, type Claims, createClaims } from '../framework/ports/background.js'
import type { StoreReader } from '../storage/store.js'

/** Must be longer than the clock difference between servers, and longer than the delay of a renewal. */
export const LEASE_MS = 15_000
const RENEWALS_IN_A_LEASE = 3
/** The record of an abandoned claim expires after this time. */
const GONE_MS = 24 * 60 * 60 * 1000
/** A claim is stored as the record of an answer with this status: 102 Processing. */
const STATUS = 102

export function createSharedClaims(host: Pick<Host, 'store' | 'hashSecret' | 'createUuid'>): Claims {
  const { store, hashSecret, createUuid } = host
  const own = createClaims()
  const find = async (reader: StoreReader, tenant: number, name: string) => {
    const id = `claim/${await hashSecret(name, reader)}`
    const record = await reader.get('answer', tenant, id)
    return { id, record, isHeld: (record?.claim?.until ?? 0) > reader.now }
  }
  const lease = async (tenant: number, name: string): Promise<Claim | undefined> => {
    const by = createUuid()
    const claim = ({ isRenewal }: { isRenewal: boolean }) =>
      store.write(async (writer) => {
        const { id, record, isHeld } = await find(writer, tenant, name)
        // A claim that was lost is not renewed, even if no other process has it now.
        if (isRenewal ? record?.claim?.by !== by : isHeld) return false
        const until = writer.now + LEASE_MS
        const next: AnswerRecord = { id, status: STATUS, subjects: [], claim: { by, until } }
        const options = { expires: writer.now + GONE_MS }
        if (record === undefined) await writer.insert('answer', tenant, next, options)
        else await writer.replace('answer', tenant, next, options)
        return true
      })
    if (!(await claim({ isRenewal: false }))) return undefined
    let renewal: Promise<unknown> = Promise.resolve()
    // If a renewal fails, the next renewal may succeed. If no renewal succeeds, the lease expires.
    const timer = setInterval(() => {
      renewal = claim({ isRenewal: true }).catch(() => false)
    }, LEASE_MS / RENEWALS_IN_A_LEASE).unref()
    const release = () =>
      store.write(async (writer) => {
        const { id, record } = await find(writer, tenant, name)
        if (record?.claim?.by === by) await writer.remove('answer', tenant, id)
      })
    return {
      async end() {
        clearInterval(timer)
        await renewal
        // If the release fails, the claim ends with its lease.
        await release().catch(() => undefined)
      },
    }
  }
  return {
    async take(tenant, name, { isLong = false } = {}) {
      const claim = await own.take(tenant, name)
      if (claim === undefined || !isLong) return claim
      const shared = await lease(tenant, name).catch(async (error) => {
        await claim.end()
        throw error
      })
      if (shared === undefined) await claim.end()
      const end = async () => {
        await shared?.end()
        await claim.end()
      }
      return shared && { end }
    },
    has: async (tenant, name) =>
      (await own.has(tenant, name)) ||
      store.read(async (reader) => (await find(reader, tenant, name)).isHeld),
  }
}
