import { manage } from '../manage.js'
import { networkTokenId, networkTokenOutput, transformFor, viewNetworkToken } from './attributes.js'

export const KIND = 'network_token'

export const READ = { operation: 'read', message: 'Network token retrieved' } as const

export const networkTokens = manage({
  name: 'network-token',
  kind: KIND,
  path: '/network-tokens',
  permission: 'network-token',
  id: networkTokenId,
  output: networkTokenOutput,
  view: ({ caller }, record) => viewNetworkToken(record, transformFor(caller)),
})
