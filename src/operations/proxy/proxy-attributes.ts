/** Input and output attributes of proxies. */
import { MAX_ELEMENTS, MAX_NAME_LENGTH } from '../../domain/reactor/formula.js'
import type { ProxyRecord } from '../../domain/records/records.js'
import {
  arrayOf,
  audit,
  boolean,
  component,
  enumOf,
  object,
  text,
  textMap,
  uuid,
} from '../../framework/output.js'
import { type Infer, idOf } from '../../framework/schema.js'
import { reference } from '../reactor/reactor-attributes.js'

const transform = object({
  type: enumOf('code', 'mask'),
  'code?': text,
  'matcher?': text,
  'expression?': text,
  'replacement?': text,
})

export const proxyOutput = component('Proxy', ['id', 'name', 'destination_url', 'key', 'created_at'], {
  id: uuid,
  tenant_id: uuid,
  name: text,
  key: { ...text, description: 'Chooses the proxy of a call.' },
  state: enumOf('active'),
  destination_url: text,
  'application_id?': uuid,
  configuration: textMap,
  require_auth: boolean,
  disable_detokenization: boolean,
  request_transforms: arrayOf(transform),
  'request_transform?': transform,
  response_transforms: arrayOf(transform),
  'response_transform?': transform,
  ...audit,
})

export const proxyId = idOf('proxy', 'The id of the proxy, or its name.')

export const proxyBody = {
  name: { type: 'string', minLength: 1, maxLength: MAX_NAME_LENGTH, description: 'A display name.' },
  destination_url: { type: 'string', description: 'Where calls go: https://api.example.com/v1.' },
  application: reference(
    'app',
    'The application that the client of its code acts as: its id or name, or {"id":"…"}.',
  ),
  configuration: {
    type: 'object',
    additionalProperties: {},
    maxProperties: MAX_ELEMENTS,
    sensitive: true,
    description: 'A configuration parameter of its code: KEY=value.',
  },
  require_auth: {
    type: 'boolean',
    description: 'Whether calls need an API key (default); without one, the application uses the tokens.',
  },
  disable_detokenization: { type: 'boolean', description: 'Whether expressions are passed on as they are.' },
  request_transforms: { description: 'Code that changes requests, as JSON: [{"type":"code","code":"…"}].' },
  request_transform: { description: 'The same, one.' },
  response_transforms: {
    description:
      'Code that changes answers, or masks: [{"type":"mask","matcher":"regex","expression":"(\\\\d{12})","replacement":"*"}].',
  },
  response_transform: { description: 'The same, one.' },
} as const

/** In a merge patch null removes an attribute, or one entry of the configuration. */
export const proxyPatch = {
  ...proxyBody,
  name: { ...proxyBody.name, nullable: false },
  destination_url: { ...proxyBody.destination_url, nullable: false },
  application: { ...proxyBody.application, nullable: true },
  configuration: { ...proxyBody.configuration, nullable: true },
  request_transforms: { ...proxyBody.request_transforms, nullable: true },
  request_transform: { ...proxyBody.request_transform, nullable: true },
  response_transforms: { ...proxyBody.response_transforms, nullable: true },
  response_transform: { ...proxyBody.response_transform, nullable: true },
} as const

export function viewProxy(record: ProxyRecord): Infer<typeof proxyOutput> {
  const { request_transforms, response_transforms } = record
  const [request, ...moreRequests] = request_transforms
  const [response, ...moreResponses] = response_transforms
  return {
    ...record,
    state: 'active',
    ...(request === undefined || moreRequests.length > 0 ? {} : { request_transform: request }),
    ...(response === undefined || moreResponses.length > 0 ? {} : { response_transform: response }),
  }
}
