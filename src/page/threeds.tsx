import type { SessionDetail, SessionStep, SessionSummary } from '../control/page-threeds.js'
import { useLive, useNameOf, useRead, useRoute } from './api.js'
import { Button, Choose, Copy, Failure, Form, Submit } from './forms.js'
import { Badge, Empty, Facts, NoneFits, Note } from './parts.js'
import { linkTo } from './route.js'
import { Items, useChosen } from './rows.js'
import { Detail, Filter, fits, Item, Screen } from './screen.js'
import { ApplicationLink, formatSpan, formatTime, RequestLink, Time } from './text.js'

type State = SessionSummary['state']

const STATES: Record<State, [text: string, kind: string]> = {
  created: ['created', ''],
  waiting: ['waiting', 'warn'],
  ended: ['no result yet', 'warn'],
  successful: ['successful', 'good'],
  attempted: ['attempted', 'good'],
  failed: ['failed', 'bad'],
  unavailable: ['unavailable', 'bad'],
  rejected: ['rejected', 'bad'],
  challenge: ['challenge', 'warn'],
  decoupled_challenge: ['challenge', 'warn'],
  informational: ['informational', ''],
}

const DOCUMENTS = 'https://github.com/coffer-vault/coffer/blob/main/docs'
const NONE = {
  title: 'No 3DS session yet',
  text: (
    <>
      Sessions of your checkout appear here. <a href={`${DOCUMENTS}/3ds.md`}>docs/3ds.md</a> has a checkout to
      copy, and <a href={`${DOCUMENTS}/test-cards.md`}>docs/test-cards.md</a> the test cards.
    </>
  ),
  command: 'coffer 3ds create --help',
}

const TICK_MS = 10_000

/**
 * The vault's clock ends challenges without a change of stored data, so the page reads again every ten seconds of this
 * clock.
 */
const useTick = () => Math.floor((useLive().news?.now ?? 0) / TICK_MS)

const StateBadge = ({ state, kind = '' }: { state: State; kind?: string }) => (
  <Badge kind={`${STATES[state][1]} ${kind}`}>{STATES[state][0]}</Badge>
)

const describeDevice = ({ type, device }: SessionSummary) => (type === 'merchant' ? 'merchant' : device)

export function ThreeDs() {
  const { news } = useLive()
  const route = useRoute()
  const { result, error } = useRead('sessions', ({ listSessions }) => listSessions(), useTick())
  const all = result?.data ?? []
  const { state } = route.filters
  const textOf = (each: SessionSummary) => `${each.id} ${each.brands.join(' ')} ${describeDevice(each)}`
  const rows = all.filter((each) => (!state || STATES[each.state][0] === state) && fits(route, textOf(each)))
  const chosen = useChosen(rows, ({ id }) => id, route.id)
  const id = route.id ?? chosen?.id
  const ageOf = (date: string) => formatSpan((news?.now ?? 0) - Date.parse(date))
  const states = [...new Set(all.map((each) => STATES[each.state][0]))].sort()
  return (
    <Screen
      find="Id, brand, device"
      error={error}
      kind="split reader"
      filters={<Filter name="state" any="Any state" of={states} />}
    >
      <Items
        rows={rows}
        chosen={chosen}
        linkOf={(each) => linkTo('3ds', each.id, route.filters)}
        empty={result && (all.length === 0 ? <Empty {...NONE} /> : <NoneFits thing="session" />)}
      >
        {(each) => (
          <Item
            name={each.id.slice(0, 8)}
            tag={<StateBadge state={each.state} kind="push" />}
            about={`${each.brands[0] ?? 'no brand'} · ${describeDevice(each)} · ${ageOf(each.created_at)}`}
          />
        )}
      </Items>
      {id !== undefined && result && <Session key={id} id={id} />}
    </Screen>
  )
}

function Session({ id }: { id: string }) {
  const { news } = useLive()
  const { result: session, error } = useRead(`session ${id}`, ({ readSession }) => readSession(id), useTick())
  if (session === undefined)
    return (
      <Detail title={`Session ${id.slice(0, 8)}`}>
        <Failure text={error} />
      </Detail>
    )
  const { state, brands, authentication } = session
  const until = authentication?.challenge?.until ?? 0
  return (
    <Detail
      title={`${brands[0] ?? 'Card'}, session ${id.slice(0, 8)}`}
      head={
        <span class="push" role="status">
          <StateBadge state={state} />
        </span>
      }
    >
      <div class="row">
        <Copy label="Copy id" text={id} />
        <a class="button" href={linkTo('requests', undefined, { find: id })}>
          Its requests
        </a>
      </div>
      {state === 'waiting' && <Decide session={session} leftMs={until - (news?.now ?? until)} />}
      <Next session={session} />
      <h3>Steps, times in UTC</h3>
      <ol class="timeline">
        {session.steps.map((step, at) => (
          <Step key={at} step={step} session={session} />
        ))}
      </ol>
      <h3>Session</h3>
      <About session={session} />
    </Detail>
  )
}

const WAITS: Record<'browser' | 'app' | 'decoupled', string> = {
  browser: 'The bank waits for the cardholder in the browser',
  app: 'The bank waits for the cardholder in the app',
  decoupled: 'The bank asks the cardholder without a browser',
}
const OUTCOMES: Record<string, string> = {
  attempted: 'attempted',
  unavailable: 'unavailable',
  rejected: 'rejected',
  'timed-out': 'timed out',
}

/** The person decides in place of the cardholder and the bank. */
function Decide({ session, leftMs }: { session: SessionDetail; leftMs: number }) {
  const { ask } = useLive()
  const { kind, isOpened, attempts } = session.authentication!.challenge!
  const decide = (outcome?: string) => ask('3ds decide', { id: session.id, ...(outcome && { outcome }) })
  const page = isOpened ? 'The page of the bank is open.' : 'The page of the bank is not open yet.'
  const wrong = attempts > 0 ? ` Wrong answers: ${attempts}.` : ''
  return (
    <section class="card stack" aria-label="Decide">
      <h3 class="title">{WAITS[kind]}</h3>
      <p class="dim">
        {kind === 'browser' && `${page}${wrong} `}
        {leftMs > 0
          ? `The challenge ends by itself in ${formatSpan(leftMs)}.`
          : 'The time for the challenge is over.'}
      </p>
      <div class="row">
        <Button text="Accept" class="primary" act={() => decide('successful')} />
        <Button text="Refuse" act={() => decide('failed')} />
        <Button text="Cancel" of=" as the cardholder" act={() => decide('cancelled')} />
        <Button text={`As the card says: ${session.scenario.final}`} act={() => decide()} />
      </div>
      <Form class="form" send={({ outcome }) => decide(outcome)}>
        <Choose label="Another outcome" name="outcome" isShown of={OUTCOMES} value="attempted" />
        <Submit text="Decide" />
      </Form>
    </section>
  )
}

function Next({ session: { id, state, scenario, lacksDevice, isRedirect, authentication } }: Detailed) {
  if (state === 'created' && scenario.failsAt === 'authenticate')
    return (
      <Note title="Each authentication fails">This test card gets an error 424 of the directory server.</Note>
    )
  if (state === 'created')
    return (
      <Note kind="" title="Not authenticated yet">
        {lacksDevice ? (
          <>
            Next, the app describes itself: <code>PUT /3ds/sessions/{id}</code>
          </>
        ) : isRedirect ? (
          'Next, the browser opens the page at redirect_url, which authenticates the session.'
        ) : (
          <>
            Next, a server authenticates the session: <code>POST /3ds/sessions/{id}/authenticate</code>
          </>
        )}
      </Note>
    )
  if (state === 'ended')
    return (
      <Note kind="warn" title={`The challenge has ended: ${authentication?.challenge?.ended?.status}`}>
        The session shows this only after a server has retrieved the result:{' '}
        <code>GET /3ds/sessions/{id}/challenge-result</code>
      </Note>
    )
  return null
}

type Detailed = { session: SessionDetail }

const NAMES: Record<SessionStep['name'], string> = {
  created: 'Created',
  described: 'The app described itself',
  method: 'Method step: the bank saw the browser',
  authenticated: 'Authenticated',
  answered: 'Wrong passcode',
  ended: 'Challenge ended',
  read: 'Session read',
  retrieved: 'Result retrieved',
}

function describeResult({
  status,
  reason,
  cancelled,
}: {
  status: string
  reason?: string
  cancelled?: string
}) {
  return [status, reason, cancelled].filter(Boolean).join(', ')
}

function describeStep(
  { name }: SessionStep,
  { authentication, scenario }: SessionDetail,
): string | undefined {
  if (name === 'created') return `test card ${scenario.name}`
  if (authentication === undefined) return undefined
  const { first, challenge } = authentication
  if (name === 'authenticated') return describeResult(first)
  if (challenge?.ended === undefined) return undefined
  return name === 'ended' || name === 'retrieved' ? describeResult(challenge.ended) : undefined
}

const ENDED_BY: Record<string, string> = {
  cardholder: 'the cardholder, on the page of the bank',
  decision: 'a decision, without a browser',
  clock: 'the clock',
  setting: 'the setting threeds.challenges',
}

/** Requests of pages have no API key, so their steps have no actor in the log. */
function describePage({ name }: SessionStep, { authentication }: SessionDetail): string {
  if (name === 'ended') return ENDED_BY[authentication?.challenge?.endedBy ?? ''] ?? 'the bank'
  if (name === 'authenticated') return 'the redirect page'
  if (name === 'answered') return 'the cardholder, on the page of the bank'
  return 'the browser'
}

function Step({ step, session }: { step: SessionStep; session: SessionDetail }) {
  const nameOf = useNameOf()
  const { requests = [] } = useLive()
  const { name, at, actor_id, actor_type, trace_id } = step
  const isKept = requests.some((request) => request.trace_id === trace_id)
  const result = describeStep(step, session)
  return (
    <li>
      <time class="mono dim" dateTime={at} title={formatTime(at, 23)}>
        {at.slice(11, 19)}
      </time>
      <div>
        <b>{NAMES[name]}</b>
        {result && <>: {result}</>}
        <div class="dim">
          by{' '}
          {actor_type === 'application' ? (
            <ApplicationLink id={actor_id} />
          ) : actor_type === 'user' ? (
            nameOf(actor_id, 'member')
          ) : (
            describePage(step, session)
          )}
          {trace_id && isKept && (
            <>
              {' '}
              · request <RequestLink of={trace_id} />
            </>
          )}
        </div>
      </div>
    </li>
  )
}

const METHODS = { none: 'none', waiting: 'not done', done: 'done' }

function About({ session }: Detailed) {
  const { id, token_id, token_intent_id, brands, scenario, metadata = {}, method } = session
  const pairs = Object.entries(metadata).map(([key, value]) => `${key} = ${value}`)
  const facts = {
    Id: <code>{id}</code>,
    Token: token_id && (
      <a class="mono" href={linkTo('tokens', token_id)}>
        {token_id}
      </a>
    ),
    'Token intent': token_intent_id && <code>{token_intent_id}</code>,
    Brand: brands.join(', ') || 'unknown',
    'Test card': `${scenario.name}: ${scenario.text}`,
    Device: describeDevice(session),
    'Method step': METHODS[method],
    Metadata: pairs.length === 0 ? undefined : <code>{pairs.join(', ')}</code>,
    Created: <Time of={session.created_at} />,
    Expires: session.expires_at && <Time of={session.expires_at} />,
  }
  return <Facts of={facts} />
}
