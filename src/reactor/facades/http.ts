import * as client from './http-client.js'
import { createFunctions } from './http-functions.js'
import { STATUS_CODES } from './status-codes.js'

const { ClientRequest, IncomingMessage, validateHeaderName, validateHeaderValue } = client

export default {
  ...createFunctions('http:', client),
  ClientRequest,
  IncomingMessage,
  METHODS: ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT'],
  STATUS_CODES,
  maxHeaderSize: 8192,
  validateHeaderName,
  validateHeaderValue,
}
