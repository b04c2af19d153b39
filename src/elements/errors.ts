/** The errors of the hosted script. Programs recognize these errors by their names. */
import type { FieldFault } from './reading.js'

export interface FieldError {
  targetId: string
  type: FieldFault
}

/**
 * Fields are empty, incomplete or invalid, and nothing was sent. `details`: the fault of each faulty property of the
 * payload.
 */
export class ValidationError extends Error {
  override readonly name = 'BasisTheoryValidationError'
  readonly details: Record<string, unknown>
  readonly validation: readonly FieldError[]

  constructor(message: string, details: Record<string, unknown>, validation: readonly FieldError[]) {
    super(message)
    this.details = details
    this.validation = validation
  }
}

/** The server has refused a request, or could not be reached (status -1). `data`: the body of the answer. */
export class ApiError extends Error {
  override readonly name = 'BasisTheoryApiError'
  readonly status: number
  readonly data: unknown

  constructor(message: string, status: number, data?: unknown) {
    super(message)
    this.status = status
    this.data = data
  }
}

/** The page uses something that these fields do not have. */
export class MissingError extends Error {
  override readonly name = 'CofferElementsError'
}

export function missing(what: string): MissingError {
  return new MissingError(
    `The card fields of Coffer do not have ${what}. docs/browser.md lists what is missing.`,
  )
}
