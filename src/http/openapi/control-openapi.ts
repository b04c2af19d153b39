/** The OpenAPI document of the control plane. Tests in any language can generate a client from it. */
import { CONTROL_PATH } from '../../framework/declaration.js'
import type { Registry } from '../../framework/registry.js'
import { headerNames } from '../headers.js'
import {
  CONTROL_KEY,
  type DocumentOptions,
  describeComponents,
  describeOperation,
  describeProblem,
  problemOutput,
  TRACE_ID,
} from './openapi.js'

export const CONTROL_DOCUMENT_PATH = `${CONTROL_PATH}/openapi.json`

export type ControlDocument = ReturnType<typeof createControlDocument>

/** The paths are relative to the URLs in `servers`, because each fork has the same paths. */
export function createControlDocument(
  registry: Registry,
  { version, prefix }: Omit<DocumentOptions, 'bodyLimitBytes'>,
) {
  const names = headerNames(prefix)
  const header = names.controlKey.toUpperCase()
  const paths: Record<string, Record<string, ReturnType<typeof describeOperation>>> = {}
  for (const operation of registry.controls) {
    const path = operation.endpoint.path.slice(CONTROL_PATH.length)
    const method = operation.endpoint.method.toLowerCase()
    paths[path] = { ...paths[path], [method]: describeOperation(operation, names) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Coffer control plane',
      version,
      summary: 'State, clock, faults and requests of a test server.',
      description: [
        `Every request needs the control key in the header ${header}.`,
        'A request from a web page of another origin or from an HTTP proxy is refused with 403. By default, only the machine of the server may send requests. If you choose the key (COFFER_CONTROL_KEY), other machines may send requests too.',
        'Failures are RFC 7807 problems.',
      ].join('\n\n'),
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [
      { url: CONTROL_PATH, description: 'The vault of the server.' },
      {
        url: `${CONTROL_PATH}/forks/{fork}`,
        description: 'A fork.',
        variables: {
          fork: { default: 'ID', description: 'The id of the fork, from the answer of POST /forks.' },
        },
      },
    ],
    tags: [{ name: 'control' }],
    paths,
    components: {
      securitySchemes: { [CONTROL_KEY]: { type: 'apiKey', in: 'header', name: header } },
      headers: { TraceId: TRACE_ID },
      responses: { Problem: describeProblem(names.traceId) },
      schemas: describeComponents([problemOutput, ...registry.controls.map(({ output }) => output ?? {})]),
    },
  }
}
