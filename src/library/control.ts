/** The control plane as library calls: a method for each of its operations. */
import type { Method } from '../client/typed-client.js'
import type { OperationName, ResultOf } from '../operations/all.js'

type Ask = <Name extends OperationName>(
  name: Name,
  input?: Record<string, unknown>,
) => Promise<ResultOf<Name>>

export type ControlCalls = ReturnType<typeof createControlCalls>

export function createControlCalls(ask: Ask) {
  const call = <Name extends OperationName>(name: Name) =>
    ((input: Record<string, unknown> = {}) => ask(name, input)) as Method<Name>
  return {
    reset: call('control reset'),
    snapshots: {
      create: call('control snapshot create'),
      list: call('control snapshot list'),
      restore: call('control snapshot restore'),
      delete: call('control snapshot delete'),
    },
    clock: {
      get: call('control clock get'),
      set: call('control clock set'),
      advance: call('control clock advance'),
    },
    faults: {
      list: call('control fault list'),
      set: call('control fault set'),
      clear: call('control fault clear'),
    },
    requests: { list: call('control request list'), clear: call('control request clear') },
    outbox: call('control outbox'),
    reveals: call('control reveals'),
    page: call('control page'),
  }
}
