/** The columns of `fixtures/cards.json`, and the answers of 3-D Secure that each test card must give. */
import { TEST_CARDS } from '../../src/domain/test-cards/table.js'
import type { ScenarioName } from '../../src/domain/threeds/scenarios.js'

type Answer = Readonly<Record<string, string>>
type Status = 'successful' | 'attempted' | 'failed' | 'unavailable' | 'rejected'

const value = 'LVJhdmVsaW4gVGVzdCBWYWx1ZS0='
const ended = (authentication_status: Status, authentication_status_code: string) => ({
  authentication_status,
  authentication_status_code,
})
const because = (authentication_status_reason: string, authentication_status_reason_code: string) => ({
  authentication_status_reason,
  authentication_status_reason_code,
})

/**
 * For each final status, the last answer about a session that ends with this status. The function {@link eciOf} adds
 * the `eci` to this answer.
 */
const ENDED: Readonly<Record<Status, Answer>> = {
  successful: { ...ended('successful', 'Y'), authentication_value: value },
  attempted: { ...ended('attempted', 'A'), authentication_value: value },
  failed: { ...ended('failed', 'N'), ...because('card-authentication-failed', '01') },
  unavailable: { ...ended('unavailable', 'U'), ...because('cardholder-not-enrolled', '13') },
  rejected: { ...ended('rejected', 'R'), ...because('suspected-fraud', '11') },
}

const challenge = (authentication_challenge_type: string, acs_challenge_mandated: string): Answer => ({
  authentication_status: 'challenge',
  authentication_status_code: 'C',
  authentication_challenge_type,
  acs_challenge_mandated,
})
const STATIC = challenge('static', 'N')
const MANDATED = challenge('static', 'Y')
const OUT_OF_BAND = challenge('out-of-band', 'N')

/**
 * A list with only a status means that `authenticate` answers with this status. The value is undefined if no session of
 * the scenario is authenticated.
 */
const EXPECTED: Readonly<Record<ScenarioName, readonly [Status] | readonly [Answer, Status] | undefined>> = {
  FY: ['successful'],
  FA: ['attempted'],
  FN: ['failed'],
  FU: ['unavailable'],
  FR: ['rejected'],
  CY: [STATIC, 'successful'],
  CYX: [STATIC, 'successful'],
  CYM: [MANDATED, 'successful'],
  CYO: [OUT_OF_BAND, 'successful'],
  CYB: [STATIC, 'successful'],
  CA: [STATIC, 'attempted'],
  CN: [STATIC, 'failed'],
  CNO: [OUT_OF_BAND, 'failed'],
  CU: [STATIC, 'unavailable'],
  CR: [STATIC, 'rejected'],
  ED: undefined,
  EI: undefined,
  X: undefined,
}

/** The names of the brands in answers of 3-D Secure. */
const NAMES: Readonly<Record<string, string>> = {
  visa: 'Visa',
  mastercard: 'Mastercard',
  'american express': 'American Express',
  discover: 'Discover',
  'diners club': 'Diners Club',
  jcb: 'JCB',
}

function eciOf(status: Status, brand: string | undefined): Answer {
  if (status === 'successful') return { eci: brand === 'Mastercard' ? '02' : '05' }
  return status === 'attempted' ? { eci: brand === 'Mastercard' ? '01' : '06' } : {}
}

interface Expected {
  authenticate?: Answer
  final?: Answer
}

function expectedOf(scenario: ScenarioName, brand: string | undefined): Expected {
  const end = (status: Status): Answer => ({ ...ENDED[status], ...eciOf(status, brand) })
  const [first, status] = EXPECTED[scenario] ?? []
  if (first === undefined) return {}
  if (typeof first === 'string') return { authenticate: end(first) }
  return { authenticate: first, final: end(status!) }
}

export const THREEDS_CARDS = TEST_CARDS.flatMap(({ number, brand, tokens, threeds }) => {
  if (threeds === undefined) return []
  const { scenario, brands = brand === null ? [] : [NAMES[brand]!] } = threeds
  const { fails_checksum = false, sca_required: documented = false } = tokens ?? {}
  return { number, brands, scenario, luhn: !fails_checksum, documented, ...expectedOf(scenario, brands[0]) }
})

export const UPDATER_CARDS = TEST_CARDS.flatMap(({ number, updater }) =>
  updater === undefined ? [] : { number, ...updater },
)

export const NETWORK_TOKEN_CARDS = TEST_CARDS.flatMap(({ number, network_tokens }) =>
  network_tokens === undefined ? [] : { number, ...network_tokens },
)
