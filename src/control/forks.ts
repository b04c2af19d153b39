/** Finds the vault that a request means: the one of the server, or a fork. */
import { CofferError } from '../errors.js'
import { authenticate } from '../framework/caller/authenticate.js'
import { inspectLink } from '../operations/invite/accept-invitation.js'
import type { ControlState } from './control-state.js'

/** The vault that knows the key, of the forks of `base`; else `base`. */
export async function findByKey(base: ControlState, key: string | undefined): Promise<ControlState> {
  if (key === undefined) return base
  for (const { plane } of base.forks.values()) {
    try {
      await authenticate(plane.app, key)
      return plane
    } catch (error) {
      if (!(error instanceof CofferError) || error.code !== 'unauthenticated') throw error
    }
  }
  return base
}

/** The vault that knows the link, of `base` and its forks. */
export async function findByLink(base: ControlState, secret: string): Promise<ControlState> {
  for (const plane of [base, ...[...base.forks.values()].map((fork) => fork.plane)]) {
    const found = await inspectLink(plane.app, secret)
    if (!('reason' in found && found.reason === 'unknown')) return plane
  }
  return base
}
