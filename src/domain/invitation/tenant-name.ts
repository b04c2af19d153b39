/** Validation of tenant names. */
import { validationError } from '../../errors.js'

export const MAX_TENANT_NAME_LENGTH = 200

/** @throws CofferError `validation`, without a path */
export function checkTenantName(name: string): void {
  // Names appear in mails, prompts and tables.
  const length = [...name].length
  if (name.trim() === '' || length > MAX_TENANT_NAME_LENGTH)
    throw validationError(`must have 1 to ${MAX_TENANT_NAME_LENGTH} characters, not all of them blank`)
  if (/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(name))
    throw validationError('must be one line without control characters')
}
