import { detokenizeArguments } from './dev-arguments.js'
import { getResult, reactLater, reactNow } from './react-async.js'
import * as reactor from './reactor.js'
import { listReactorRuns, listScrubbedRuns } from './reactor-runs.js'

export const noun = {
  name: 'reactor',
  summary: 'Run code on the data of tokens',
  operations: [
    reactor.createReactor,
    reactor.listReactors,
    reactor.getReactor,
    reactor.updateReactor,
    reactor.patchReactor,
    reactor.deleteReactor,
    reactNow,
    reactLater,
    getResult,
    listReactorRuns,
    listScrubbedRuns,
    detokenizeArguments,
  ],
}
