/** Processes the uploaded files of the account updater when their jobs are due. */
import type { RecordOf } from '../domain/records/records.js'
import type { Host } from '../framework/host.js'
import type { Channel, Outcome } from './queue.js'

type Kind = 'account_updater_job'

export class UpdaterChannel implements Channel<Kind> {
  readonly kind = 'account_updater_job'
  readonly isOrdered = true
  readonly atOnce = 1
  readonly leaseMs = 60_000
  readonly #host: () => Host
  #isStopped = false

  constructor(host: () => Host) {
    this.#host = host
  }

  laneOf(): string {
    return ''
  }

  async send(tenant: number, { id }: RecordOf[Kind]): Promise<Outcome<Kind>> {
    // Imported only when a job is due, because every vault creates this channel.
    const { processJob } = await import('../operations/updater/process-job.js')
    const { leaseMs } = this
    await processJob({ host: this.#host(), tenant, id, leaseMs, isStopped: () => this.#isStopped })
    return { change: async () => undefined }
  }

  abort(): void {
    this.#isStopped = true
  }
}
