/** Requests of operations over HTTP, without a socket. */
import { formatRequest } from '../../src/client/format-request.js'
import { authenticate } from '../../src/framework/caller/authenticate.js'
import type { RoutedOperation } from '../../src/framework/registry.js'
import { completeService, type Handler } from '../../src/http/start.js'
import { registry } from '../../src/operations/all.js'
import { handlerOf } from '../support/service.js'
import type { TestVault } from '../support/test-vault.js'
import type { Input } from './documented.js'

export function serve({ app }: TestVault): Handler {
  const service = { host: app, registry, authenticate, version: '0.0.0', bodyLimitBytes: 16_384 }
  return handlerOf(completeService(service))
}

export function toRequest(
  definition: RoutedOperation,
  input: Input,
  { key, type, filler = '' }: { key: string | undefined; type?: string | undefined; filler?: string },
): Request {
  const { target, body } = formatRequest(definition, input)
  return new Request(`http://localhost${target}`, {
    method: definition.endpoint.method,
    headers: {
      'content-type': type ?? definition.contentType ?? 'application/json',
      ...(key !== undefined && { 'svc-api-key': key }),
    },
    ...(body !== undefined && { body: body + filler }),
  })
}
