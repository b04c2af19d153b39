/** The library opens a vault in the caller's process and can start its HTTP server. */
export type { Client } from './client/typed-client.js'
export { CofferError, type ErrorCode, type Problem } from './errors.js'
export {
  type ClientOptions,
  type Control,
  createClient,
  createControl,
  type RemoteFork,
} from './library/clients.js'
export {
  type AskOptions,
  type Coffer,
  type CofferServer,
  createHandler,
  type HandlerOptions,
  type Tenant,
  type TestVault,
} from './library/coffer.js'
export { listen, type WebhookAttempt, type WebhookListener, type WebhookOptions } from './library/listen.js'
export * from './library/open.js'
export type { OperationName, ResultOf } from './operations/all.js'
