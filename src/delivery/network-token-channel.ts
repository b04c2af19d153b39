/**
 * Makes network tokens inactive when they are due to become inactive. The queue calls this channel, also after a
 * restart.
 */
import type { RecordOf } from '../domain/records/records.js'
import type { Channel, Outcome } from './queue.js'

type Kind = 'network_token'

export class NetworkTokenChannel implements Channel<Kind> {
  readonly kind = 'network_token'
  readonly isOrdered = true
  readonly atOnce = 16
  readonly leaseMs = 60_000
  readonly #createUuid: () => string

  constructor(createUuid: () => string) {
    this.#createUuid = createUuid
  }

  laneOf(): string {
    return ''
  }

  async send(number: number): Promise<Outcome<Kind>> {
    // Loaded only when a network token is due, because every vault has this channel.
    const { tellChange } = await import('../operations/network-token/states.js')
    const createUuid = this.#createUuid
    return {
      // The record can have changed since the queue found the record. Therefore the state is checked again here, in the
      // unit of work that stores the record.
      change: async (found: RecordOf[Kind], store, enqueue) => {
        const tenant = await store.get('tenant', 0, String(number))
        if (tenant === undefined || found.state !== 'waiting') return undefined
        const { record, waiting } = await tellChange({ store, createUuid }, tenant, found, 'inactive')
        enqueue(waiting)
        return record
      },
    }
  }

  abort(): void {
    // A change is one short unit of work, so nothing has to be aborted.
  }
}
