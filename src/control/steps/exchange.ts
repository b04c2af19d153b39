import type { ExplainedDecision } from '../../framework/caller/decisions.js'
import type { FaultRule, RequestRecord } from '../../framework/ports/control.js'
import type { RegisteredOperation } from '../../framework/registry.js'
import type { HttpRequest } from '../../http/exchange.js'
import { Exchange, type Step } from '../../http/steps/step.js'
import type { ControlState } from '../control-state.js'

export class VaultExchange extends Exchange {
  control: ControlState
  isWatched = false
  operation: RegisteredOperation | undefined
  fault: FaultRule['kind'] | undefined
  isStale = false
  readonly destination: Pick<RequestRecord, 'destination' | 'destination_status'> = {}
  readonly decisions = new Map<string, ExplainedDecision>()

  constructor(request: HttpRequest, control: ControlState) {
    super(request)
    this.control = control
  }
}

export type VaultStep = Step<VaultExchange>
