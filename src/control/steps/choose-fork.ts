import { ACCEPT_PATH } from '../../domain/invitation/invitation.js'
import { jobOfPath } from '../../domain/updater/paths.js'
import { CofferError } from '../../errors.js'
import { authenticate } from '../../framework/caller/authenticate.js'
import { headerNames, readHeader } from '../../http/headers.js'
import { type BankPage, findBankPage } from '../../http/pages/threeds/routes.js'
import { DeadLink, inspectLink } from '../../operations/invite/accept-invitation.js'
import type { ControlState } from '../control-state.js'
import { keepBody } from './body.js'
import type { VaultExchange, VaultStep } from './exchange.js'

/**
 * Chooses the vault that answers. A request belongs to a fork if it contains one of these: an API key of the fork, a
 * link from a mail of the fork, or the id of one of the fork's 3-D Secure sessions or account updater jobs.
 */
export function chooseFork(prefix: string): VaultStep {
  const { apiKey } = headerNames(prefix)
  return async (exchange, next) => {
    if (exchange.control.forks.size > 0) exchange.control = await find(exchange, apiKey)
    return next(exchange)
  }
}

function find(exchange: VaultExchange, apiKey: string): Promise<ControlState> {
  const page = findBankPage(exchange.path)
  if (page !== undefined) return findBySession(exchange, page)
  if (exchange.path === ACCEPT_PATH) return findByLink(exchange)
  const job = jobOfPath(exchange.path)
  if (job !== undefined) return findByJob(exchange.control, job)
  return findByKey(exchange.control, readHeader(exchange.request.headers, apiKey))
}

/** A fork begins without the sessions of the original vault, so only one vault has the session. */
async function findBySession(
  { control: base, request }: VaultExchange,
  page: BankPage,
): Promise<ControlState> {
  const { findSession } = await import('../../operations/3ds/pages.js')
  const { readNamedSession } = await import('../../http/pages/threeds/pages.js')
  keepBody(request)
  const id = await readNamedSession(page, request)
  for (const control of [base, ...base.forks.values()]) {
    const found = await control.app.store
      .read((reader) => findSession(reader, id))
      .catch((error: unknown) => error)
    const isUnknown = found instanceof CofferError && found.code === 'not_found'
    if (!isUnknown && (control === base || isOpen(base, control))) return control
  }
  return base
}

/** If a job was created before the fork, both vaults have the job. The original vault then answers. */
async function findByJob(base: ControlState, id: string): Promise<ControlState> {
  const { findJobOfAny } = await import('../../operations/updater/files.js')
  for (const control of [base, ...base.forks.values()]) {
    const found = await control.app.store
      .read((reader) => findJobOfAny(reader, id))
      .catch((error: unknown) => error)
    if (found !== undefined && (control === base || isOpen(base, control))) return control
  }
  return base
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
