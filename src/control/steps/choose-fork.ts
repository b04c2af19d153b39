import { ACCEPT_PATH } from '../../domain/invitation/invitation.js'
import { CofferError } from '../../errors.js'
import { authenticate } from '../../framework/caller/authenticate.js'
import { headerNames, readHeader } from '../../http/headers.js'
import { DeadLink, inspectLink } from '../../operations/invite/accept-invitation.js'
import type { ControlState } from '../control-state.js'
import type { VaultExchange, VaultStep } from './exchange.js'

/**
 * Chooses the vault that answers. A request belongs to a fork if it has an API key of the fork, or a link from a mail
 * of the fork.
 */
export function chooseFork(prefix: string): VaultStep {
  const { apiKey } = headerNames(prefix)
  return async (exchange, next) => {
    if (exchange.control.forks.size > 0) {
      const key = readHeader(exchange.request.headers, apiKey)
      exchange.control =
        exchange.path === ACCEPT_PATH ? await findByLink(exchange) : await findByKey(exchange.control, key)
    }
    return next(exchange)
  }
}

async function findByLink({ control: base, search }: VaultExchange): Promise<ControlState> {
  const link = new URLSearchParams(search).get('token') ?? ''
  for (const control of [base, ...base.forks.values()]) {
    const found = await inspectLink(control.app, link).catch((error: unknown) => error)
    const isUnknown = found instanceof DeadLink && found.reason === 'unknown'
    if (!isUnknown && (control === base || isOpen(base, control))) return control
  }
  return base
}

async function findByKey(base: ControlState, key: string | undefined): Promise<ControlState> {
  for (const fork of key === undefined ? [] : [...base.forks.values()]) {
    try {
      await authenticate(fork.app, key!)
      return fork
    } catch (error) {
      const isUnknown = error instanceof CofferError && error.code === 'unauthenticated'
      if (!isUnknown && isOpen(base, fork)) throw error
    }
  }
  return base
}

/** False if the fork was deleted during the request. */
function isOpen(base: ControlState, fork: ControlState): boolean {
  return base.forks.get(fork.fact?.id ?? '') === fork
}
