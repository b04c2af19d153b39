/** Makes network tokens inactive at their due time. */
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
    // Imported only when a network token is due, because every vault creates this channel.
    const { tellChange } = await import('../operations/network-token/states.js')
    const createUuid = this.#createUuid
    return {
      // The state is checked again, because the record may have changed since the queue found it.
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
