/** The source of the module of reactor errors. In a compartment its classes extend the `Error` of the compartment. */

/** Our name of the module, and the name that existing formulas use. */
export const ERROR_MODULES = ['coffer/errors', '@basis-theory/basis-theory-reactor-formulas-sdk-js'] as const

/** By the name of the class: the status, and the message unless another is given. */
const CLASSES: Readonly<Record<string, readonly [status: number, message: string]>> = {
  BadRequestError: [400, 'Bad Request'],
  InvalidReactorConfigurationError: [400, 'Invalid Reactor Configuration'],
  AuthenticationError: [401, 'Authentication Failed'],
  InvalidPaymentMethodError: [402, 'Invalid Payment Method'],
  InvalidCardError: [402, 'Invalid Card'],
  AuthorizationError: [403, 'Forbidden'],
  InvalidReactorFormulaError: [422, 'Invalid Reactor Formula'],
  RateLimitError: [429, 'Rate Limit Error'],
  ReactorRuntimeError: [500, 'Reactor Runtime Error'],
  ServiceUnavailableError: [503, 'Service Unavailable'],
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
${Object.entries(CLASSES)
  .map(([name, [status, message]]) => describeClass(name, status, message))
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

function describeClass(name: string, status: number, message: string): string {
  return `exports.${name} = class ${name} extends ReactorError {
  constructor(errors, message) {
    super('${name}', ${status}, message ?? '${message}', errors)
  }
}`
}
