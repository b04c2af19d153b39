import { HEALTH_PATH } from '../../http/exchange.js'
import { closeStream } from '../faults.js'
import type { VaultStep } from './exchange.js'
import type { Refusal } from './refuse.js'

/** In a vault with a control plane, delays resets until the request is answered. */
export function holdData({ refuseStale }: Pick<Refusal, 'refuseStale'>): VaultStep {
  return (exchange, next) => {
    const { app, lock } = exchange.control
    // The check of health does not wait: a reset waits for slow clients, and other requests wait for the reset.
    if (app.control === undefined || exchange.path === HEALTH_PATH) return next(exchange)
    return lock.shared(async () => {
      const { generation } = app
      const response = await next(exchange)
      if (app.generation === generation) return response
      // Only the deletion of a fork does not wait for the request.
      await closeStream(response)
      return refuseStale(exchange)
    })
  }
}
