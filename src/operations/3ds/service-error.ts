import { CofferError, type ServiceError } from '../../errors.js'

/** The HTTP status of an answer if the bank, the directory server or the 3DS server has failed. */
export const SERVICE_STATUS = 424

export function serviceFailed(service: ServiceError): CofferError {
  const message = "The 3DS service returned an error. See the 'error' field for more details."
  return new CofferError('threeds_failed', message, { service })
}

/** Returns the error that a fault rule requests for an operation on the session in `path`. */
export function serviceFault(
  path: string,
  detail = 'A fault rule of the control plane caused this answer.',
): CofferError {
  const [, session_id = ''] = /^\/3ds\/sessions\/([^/]+)/.exec(path) ?? []
  const message = 'The access control server failed.'
  return serviceFailed({
    service_status: '502',
    session_id,
    error_source: 'Access Control Server',
    message,
    detail,
  })
}
