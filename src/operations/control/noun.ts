import * as control from './control.js'
import * as faults from './faults.js'

export const noun = {
  name: 'control',
  summary: 'Control a server that tests use: its state, clock and faults',
  groups: {
    snapshot: 'Keep the data under a name, and return to it.',
    fork: 'Separate tenants for parallel test workers.',
    clock: 'The time by which things expire.',
    fault: 'Let requests fail.',
    request: 'See the requests, or wait for them.',
  },
  operations: [
    control.reset,
    control.saveSnapshot,
    control.listSnapshots,
    control.restoreSnapshot,
    control.deleteSnapshot,
    control.createFork,
    control.listForks,
    control.deleteFork,
    control.readClock,
    control.setClock,
    control.advanceClock,
    faults.listFaults,
    faults.setFaults,
    faults.clearFaults,
    control.listRequests,
    control.clearRequests,
    control.listOutbox,
    control.countReveals,
    control.openPage,
  ],
}
