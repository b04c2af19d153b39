import * as proxy from './proxy.js'
import { callProxy } from './proxy-call.js'

export const noun = {
  name: 'proxy',
  summary: 'Call other servers with the data of tokens',
  operations: [
    proxy.createProxy,
    proxy.listProxies,
    proxy.getProxy,
    proxy.updateProxy,
    proxy.patchProxy,
    proxy.deleteProxy,
    callProxy,
  ],
}
