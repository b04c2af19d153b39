import type { ControlState } from './control-state.js'

/** `tenant`: a name or id. Undefined means the first tenant. */
export interface Place {
  control: ControlState
  tenant: string | undefined
}
