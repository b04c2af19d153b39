import { HEALTH_PATH } from '../../http/exchange.js'
import { closeStream } from '../faults.js'
import type { VaultStep } from './exchange.js'
import type { Refusal } from './refuse.js'

/** If the vault has a control plane, a reset waits until the request is answered. */
export function holdData({ refuseStale }: Pick<Refusal, 'refuseStale'>): VaultStep {
  return (exchange, next) => {
    const { app, lock } = exchange.control
    // The health check does not acquire the lock. Otherwise one slow client would delay a reset, and the reset would
    // delay the health check.
    if (app.control === undefined || exchange.path === HEALTH_PATH) return next(exchange)
    return lock.shared(async () => {
      const { generation } = app
      const response = await next(exchange)
      if (app.generation === generation) return response
      // The lock excludes a reset, so the fork was deleted during the request.
      await closeStream(response)
      return refuseStale(exchange)
    })
  }
}
