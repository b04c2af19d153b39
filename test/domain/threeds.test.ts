/** 3-D Secure: the test cards, and the states of a session. */
import t from 'tap'
import type { ThreeDsSessionRecord } from '../../src/domain/records/threeds-record.js'
import { findTestCard } from '../../src/domain/threeds/cards.js'
import * as values from '../../src/domain/threeds/enumerations.js'
import { SCENARIOS, type ScenarioName } from '../../src/domain/threeds/scenarios.js'
import * as states from '../../src/domain/threeds/session.js'
import { viewAuthentication, viewCreated, viewSession } from '../../src/domain/threeds/view.js'
import { isLuhnValid } from '../../src/domain/token/luhn.js'
import { isAcceptedWithoutLuhn, isScaRequired } from '../../src/domain/token/test-cards.js'
import { THREEDS_CARDS as cards } from '../support/published-cards.js'

const NOW = Date.parse('2030-01-15T12:00:00Z')
const IDS = { acs_transaction_id: 'acs', ds_transaction_id: 'ds' }

function sessionOf(scenario: ScenarioName, more: Partial<ThreeDsSessionRecord> = {}): ThreeDsSessionRecord {
  return {
    id: 'session',
    tenant_id: 'tenant',
    type: 'customer',
    device: 'browser',
    token_id: 'token',
    brands: ['Visa'],
    scenario,
    base: 'https://shop.example',
    method: 'waiting',
    expires_at: '2030-01-15T13:00:00.000+00:00',
    created_by: 'app',
    created_at: '2030-01-15T12:00:00.000+00:00',
    ...more,
  }
}

const authenticate = (session: ThreeDsSessionRecord, wishes: states.AuthenticationWishes = {}) =>
  states.authenticate(session, wishes, IDS, NOW)

t.test('the program and the fixture have equal lists of 3-D Secure test numbers', async (t) => {
  t.equal(cards.length, 58)
  t.equal(new Set(cards.map(({ number }) => number)).size, cards.length)
  t.equal(cards.filter(({ luhn }) => !luhn).length, 18)
  for (const { number, luhn, documented, brands, scenario } of cards) {
    t.equal(isLuhnValid(number), luhn, number)
    t.equal(isAcceptedWithoutLuhn(number), !luhn, number)
    t.equal(isScaRequired(number), documented, number)
    for (const others of ['unsupported', 'frictionless'] as const)
      t.strictSame(findTestCard(number, others), { brands, scenario }, number)
  }
  for (const near of ['4200000000000001', '4200000000000018', '42000000000000021', '1111', '']) {
    t.notOk(isAcceptedWithoutLuhn(near), near)
    t.notOk(isScaRequired(near), near)
  }
})

t.test(
  'a card that is not a published test card is unsupported, or is authenticated without a challenge if the setting allows this',
  async (t) => {
    t.strictSame(findTestCard('4012888888881881', 'unsupported'), { brands: [], scenario: 'X' })
    t.strictSame(findTestCard('4012888888881881', 'frictionless'), { brands: ['Visa'], scenario: 'FY' })
    t.strictSame(findTestCard('6200000000000005', 'frictionless'), { brands: ['UnionPay'], scenario: 'FY' })
    t.strictSame(findTestCard('9999999999999995', 'frictionless'), { brands: [], scenario: 'X' }, 'no scheme')
  },
)

t.test('the session of each test card is authenticated and ends as the fixture says', async (t) => {
  for (const { number, scenario, brands, authenticate: first, final } of cards) {
    if (first === undefined) {
      t.ok('failsAt' in SCENARIOS[scenario] || 'isUnsupported' in SCENARIOS[scenario], number)
      continue
    }
    const session = authenticate(sessionOf(scenario, { brands: brands as values.BrandName[] }))
    const shown = viewAuthentication(session) as Record<string, unknown>
    const result = ['status', 'status_code', 'status_reason', 'status_reason_code', 'value']
    const names = [...result.map((name) => `authentication_${name}`), 'eci']
    const pick = (view: Record<string, unknown>, expected: Record<string, string>) =>
      Object.fromEntries(
        [...new Set([...names, ...Object.keys(expected)])]
          .filter((name) => view[name] !== undefined)
          .map((name) => [name, view[name]]),
      )
    t.strictSame(pick(shown, first), first, `${number} at first`)
    if (final === undefined) {
      t.throws(() => states.retrieveResult(session), { code: 'conflict' }, number)
      t.notOk('acs_challenge_mandated' in shown, number)
      continue
    }
    const ended = viewAuthentication(states.retrieveResult(states.decide(session))) as Record<string, unknown>
    t.strictSame(pick(ended, final), final, `${number} at the end`)
    t.match(ended, { directory_status_code: 'C', challenge_attempts: '01', message_extensions: [] }, number)
    t.equal(ended.acs_transaction_id, shown.acs_transaction_id)
  }
})

t.test('a merchant session, and a decoupled challenge, end with the result of their scenario', async (t) => {
  for (const scenario of Object.keys(SCENARIOS) as ScenarioName[]) {
    const { challenge, final } = SCENARIOS[scenario] as { challenge?: string; final?: values.FinalStatus }
    if (final === undefined) continue
    const merchant = sessionOf(scenario, { type: 'merchant' })
    for (const session of [
      authenticate(merchant),
      authenticate(sessionOf(scenario), { request_decoupled_challenge: true }),
    ]) {
      t.equal(
        session.authentication.first.status,
        challenge === undefined ? final : 'decoupled_challenge',
        scenario,
      )
      if (challenge === undefined) continue
      t.match(viewAuthentication(session), {
        acs_decoupled_authentication: 'Y',
        authentication_challenge_type: 'decoupled',
        directory_status_code: 'D',
        acs_challenge_url: undefined,
      })
      t.equal(states.isPending(states.settle(session, NOW + states.DECOUPLED_MS - 1)), true)
      const ended = states.settle(session, NOW + states.DECOUPLED_MS)
      t.equal(states.retrieveResult(ended).authentication.challenge.ended?.status, final, scenario)
    }
    if (challenge === undefined) continue
    const refused = authenticate(merchant, { request_decoupled_challenge: false })
    t.match(viewAuthentication(refused), {
      authentication_status: 'failed',
      authentication_status_reason: 'decoupled-authentication-required',
      authentication_status_reason_code: '23',
    })
  }
})

t.test('each outcome that can be decided gives the documented result', async (t) => {
  const expected: Record<states.Outcome, object> = {
    successful: { authentication_status: 'successful', eci: '05' },
    attempted: { authentication_status: 'attempted', eci: '06' },
    failed: { authentication_status: 'failed', authentication_status_reason_code: '01' },
    unavailable: { authentication_status: 'unavailable', authentication_status_reason_code: '13' },
    rejected: { authentication_status: 'rejected', authentication_status_reason_code: '11' },
    cancelled: { authentication_status: 'failed', challenge_cancel_reason_code: '01' },
    'timed-out': {
      authentication_status: 'failed',
      authentication_status_reason_code: '14',
      challenge_cancel_reason_code: '05',
    },
  }
  for (const outcome of states.OUTCOMES) {
    const ended = states.decide(authenticate(sessionOf('CY')), outcome)
    t.match(viewAuthentication(states.retrieveResult(ended)), expected[outcome], outcome)
    t.throws(() => states.decide(ended, outcome), { code: 'conflict' }, `${outcome} once`)
  }
  const decoupled = authenticate(sessionOf('CY'), { request_decoupled_challenge: true })
  t.match(viewAuthentication(states.retrieveResult(states.decide(decoupled, 'timed-out'))), {
    authentication_status_reason: 'decoupled-authentication-timeout',
    authentication_status_reason_code: '24',
    challenge_cancel_reason: 'acs-timeout',
  })
  t.throws(() => states.decide(authenticate(sessionOf('FY'))), { code: 'conflict' })
  t.throws(() => states.decide(sessionOf('CY')), { code: 'conflict' })
})

t.test('a browser challenge without an answer ends after ten minutes', async (t) => {
  const pending = authenticate(sessionOf('CY'))
  t.equal(states.settle(pending, NOW + states.CHALLENGE_MS - 1), pending)
  const late = (session: ThreeDsSessionRecord) =>
    viewAuthentication(states.retrieveResult(states.settle(session, NOW + states.CHALLENGE_MS)))
  const reason = { authentication_status_reason: 'timeout-at-acs', authentication_status_reason_code: '14' }
  t.match(late(pending), { ...reason, challenge_cancel_reason: 'acs-timeout-request-not-received' })
  const opened = states.openChallenge(pending as states.Challenged)!
  t.equal(states.openChallenge(opened), undefined, 'opened again')
  t.match(late(opened), { ...reason, challenge_cancel_reason: 'acs-timeout' })
})

t.test('the answers that the cardholder gives on the challenge page decide the result', async (t) => {
  const begin = (scenario: ScenarioName) => authenticate(sessionOf(scenario))
  const after = (scenario: ScenarioName, ...answers: states.ChallengeAnswer[]) =>
    answers.reduce<ThreeDsSessionRecord>(states.answerChallenge, begin(scenario)) as states.Challenged
  const [wrong, right] = [{ code: '0000' }, { code: '1234' }]
  const table: [states.Challenged, object | undefined, number, string?][] = [
    [after('CY', right), { status: 'successful' }, 1, 'successful'],
    [after('CA', right), { status: 'attempted' }, 1, 'successful'],
    [after('CN', right), { status: 'failed', reason: 'card-authentication-failed' }, 1, 'failed'],
    [after('CU', right), { status: 'unavailable', reason: 'cardholder-not-enrolled' }, 1, 'failed'],
    [after('CY', wrong), undefined, 1],
    [after('CY', wrong, wrong), undefined, 2],
    [after('CY', wrong, wrong, right), { status: 'successful' }, 3, 'successful'],
    [after('CY', wrong, wrong, wrong), { status: 'failed', reason: 'max-challenges-exceeded' }, 3, 'failed'],
    [after('CY', 'cancel'), { status: 'failed', cancelled: 'cardholder-canceled' }, 0, 'failed'],
    [after('CY', 'done'), undefined, 1],
    [after('CYO', 'done'), { status: 'successful' }, 1, 'successful'],
    [after('CNO', 'done'), { status: 'failed', reason: 'card-authentication-failed' }, 1, 'failed'],
  ]
  for (const [session, ended, attempts, told] of table) {
    const { challenge } = session.authentication
    t.strictSame(challenge.ended, ended)
    t.equal(challenge.attempts, attempts)
    if (told === undefined) continue
    t.equal(states.toldStatus(session), told)
    t.throws(() => states.answerChallenge(session, right), { code: 'conflict' }, 'replayed')
  }
})

t.test('a 3-D Secure session shows its first answer until the result is retrieved', async (t) => {
  const ended = states.decide(authenticate(sessionOf('CY')))
  t.match(viewSession(ended).authentication, { authentication_status: 'challenge', eci: undefined })
  const final = states.retrieveResult(ended)
  t.match(viewSession(final).authentication, { authentication_status: 'successful', eci: '05' })
  t.strictSame(states.retrieveResult(final), final, 'repeated')
  t.throws(() => authenticate(ended), { code: 'conflict' }, 'authenticated twice')
  t.equal(final.expires_at, undefined, 'it does not expire any more')
})

t.test(
  'a 3-D Secure session shows its addresses, and an indicator says whether the method step was completed',
  async (t) => {
    const { method: _, ...bare } = sessionOf('CYX')
    t.match(viewCreated(sessionOf('FY')), {
      cardBrand: 'Visa',
      method_url: 'https://shop.example/3ds/acs/browser/method',
      method_notification_url: 'https://shop.example/3ds/sessions/session/method-notification',
      redirect_url: undefined,
      additional_card_brands: undefined,
    })
    t.match(viewCreated(bare), { method_url: '' })
    t.match(viewCreated({ ...bare, type: 'merchant' }), { method_url: '', method_notification_url: '' })
    const indicator = (session: ThreeDsSessionRecord) =>
      viewSession(session).method.method_completion_indicator
    const done = states.completeMethod(sessionOf('FY'))!
    t.strictSame([indicator(bare), indicator(sessionOf('FY')), indicator(done)], ['U', 'N', 'Y'])
    t.equal(states.completeMethod(done), undefined)
    t.equal(states.completeMethod(bare), undefined)
  },
)

t.test(
  'the 3-D Secure enumerations have the documented number of values, and all status reasons but one have codes',
  async (t) => {
    t.equal(Object.keys(values.STATUS_REASONS).length, 36)
    t.equal(Object.keys(values.CHALLENGE_PREFERENCES).length, 10)
    t.equal(Object.keys(values.CANCEL_REASONS).length, 7)
    t.equal(Object.keys(values.STATUSES).length, 8)
    t.strictSame(
      [values.AUTHENTICATION_TYPES.customer.length, values.AUTHENTICATION_TYPES.merchant.length],
      [7, 12],
    )
    const withoutCode = Object.entries(values.STATUS_REASONS).filter(([, code]) => code === undefined)
    t.strictSame(
      withoutCode.map(([name]) => name),
      ['device-3ri-not-routed-to-smart-authentication-stand-in'],
    )
  },
)
