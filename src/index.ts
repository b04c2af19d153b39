/**
 * The library: a vault in the caller's process, and its HTTP server, to embed in tests. A handler answers a `Request`
 * with a `Response` and needs no port.
 */
export type { Client } from './client/typed-client.js'
export { CofferError, type ErrorCode, type Problem } from './errors.js'
export type {
  AskOptions,
  Coffer,
  CofferServer,
  Control,
  HandlerOptions,
  ServerOptions,
  Tenant,
  TestVaultOptions,
  VaultOptions,
} from './library/api.js'
export { type ClientOptions, createClient } from './library/client.js'
export { createHandler, openTestVault, openVault, startServer } from './library/open.js'
export type { OperationName, ResultOf } from './operations/all.js'
export type { Seed } from './operations/seed/seed-schema.js'
