/**
 * The module of reactor errors as source text. It is evaluated in a compartment, so that its classes extend the `Error` of
 * the compartment.
 */

/** Our name of the module, and the name that existing formulas use. */
export const ERROR_MODULES = ['coffer/errors', '@basis-theory/basis-theory-reactor-formulas-sdk-js'] as const

const STATUSES = {
  BadRequestError: 400,
  InvalidReactorConfigurationError: 400,
  AuthenticationError: 401,
  InvalidPaymentMethodError: 402,
  InvalidCardError: 402,
  AuthorizationError: 403,
  InvalidReactorFormulaError: 422,
  RateLimitError: 429,
  ReactorRuntimeError: 500,
  ServiceUnavailableError: 503,
} as const

const MESSAGES: Record<keyof typeof STATUSES, string> = {
  BadRequestError: 'Bad Request',
  InvalidReactorConfigurationError: 'Invalid Reactor Configuration',
  AuthenticationError: 'Authentication Failed',
  InvalidPaymentMethodError: 'Invalid Payment Method',
  InvalidCardError: 'Invalid Card',
  AuthorizationError: 'Forbidden',
  InvalidReactorFormulaError: 'Invalid Reactor Formula',
  RateLimitError: 'Rate Limit Error',
  ReactorRuntimeError: 'Reactor Runtime Error',
  ServiceUnavailableError: 'Service Unavailable',
}

/** The constructors take the errors as text, an array, an Error or an object of these, and an optional message. */
export const ERROR_CLASSES_SOURCE = `
class ReactorError extends Error {
  constructor(name, status, message, errors) {
    super(message)
    Object.defineProperty(this, 'name', { value: name, configurable: true, writable: true })
    this.status = status
    this.errors = errors
  }
}
exports.ReactorError = ReactorError
${Object.entries(STATUSES)
  .map(([name, status]) => describeClass(name as keyof typeof STATUSES, status))
  .join('\n')}
exports.CustomHttpResponseError = class CustomHttpResponseError extends ReactorError {
  constructor({ status = 500, headers, body } = {}) {
    if (!Number.isInteger(status) || status < 100 || status > 599)
      throw new TypeError('status must be an integer from 100 to 599')
    super('CustomHttpResponseError', status, 'The reactor answered with its own response', body)
    this.headers = headers
    this.body = body
  }
}
`

function describeClass(name: keyof typeof STATUSES, status: number): string {
  return `exports.${name} = class ${name} extends ReactorError {
  constructor(errors, message) {
    super('${name}', ${status}, message ?? '${MESSAGES[name]}', errors)
  }
}`
}
