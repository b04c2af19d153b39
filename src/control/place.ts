import type { ControlState } from './control-state.js'

/**
 * The vault of a request of the page, and the tenant by name or id. If `tenant` is undefined, the first
 * tenant is used.
 */
export interface Place {
  control: ControlState
  tenant: string | undefined
}
