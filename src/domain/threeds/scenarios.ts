/** The decisions of the simulated bank about a card. A new session gets the scenario of its card. */
import type { FinalStatus, StatusReason } from './enumerations.js'

export interface Scenario {
  /** Absent if the card cannot be authenticated. */
  final?: FinalStatus
  /** How the bank asks the cardholder. If absent, the bank decides immediately. */
  challenge?: 'static' | 'out-of-band'
  isMandated?: true
  hasNoMethod?: true
  /** This operation fails as if the external 3DS service had returned an error. */
  failsAt?: 'create' | 'authenticate'
  isUnsupported?: true
}

export const SCENARIOS = {
  FY: { final: 'successful' },
  FA: { final: 'attempted' },
  FN: { final: 'failed' },
  FU: { final: 'unavailable' },
  FR: { final: 'rejected' },
  CY: { challenge: 'static', final: 'successful' },
  CYX: { challenge: 'static', final: 'successful', hasNoMethod: true },
  CYM: { challenge: 'static', final: 'successful', isMandated: true },
  CYO: { challenge: 'out-of-band', final: 'successful' },
  CYB: { challenge: 'static', final: 'successful' },
  CA: { challenge: 'static', final: 'attempted' },
  CN: { challenge: 'static', final: 'failed' },
  CNO: { challenge: 'out-of-band', final: 'failed' },
  CU: { challenge: 'static', final: 'unavailable' },
  CR: { challenge: 'static', final: 'rejected' },
  ED: { failsAt: 'authenticate' },
  EI: { failsAt: 'create' },
  X: { isUnsupported: true },
} as const satisfies Record<string, Scenario>

export type ScenarioName = keyof typeof SCENARIOS

export function scenarioOf(name: ScenarioName): Scenario {
  return SCENARIOS[name]
}

/** Returns a text such as `a challenge, then successful`. */
export function describeScenario(name: ScenarioName): string {
  const { challenge, final, isMandated, hasNoMethod, failsAt, isUnsupported } = scenarioOf(name)
  if (isUnsupported) return 'error 400 of create: no scheme supports the card'
  if (failsAt !== undefined) return `error 424 of ${failsAt}`
  if (challenge === undefined) return `${final}`
  const kind = [isMandated && 'mandated', challenge === 'out-of-band' && 'out-of-band'].filter(Boolean)
  const form = ['a', ...kind, 'challenge'].join(' ').replace('a out', 'an out')
  return `${hasNoMethod ? 'no method step, ' : ''}${form}, then ${final}`
}

export const REASONS: { readonly [S in FinalStatus]?: StatusReason } = {
  failed: 'card-authentication-failed',
  unavailable: 'cardholder-not-enrolled',
  rejected: 'suspected-fraud',
}
