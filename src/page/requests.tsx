import { useEffect, useMemo, useState } from 'preact/hooks'
import { type Seen, useAction, useLive, useNameOf } from './api.js'
import { Button, Choose } from './forms.js'
import { Badge, Empty, Method, NoneFits, Status, Terminal } from './parts.js'
import { isFailed, queryOf, Request } from './request.js'
import { linkTo, type Route, setFilter } from './route.js'
import { type Column, Rows, useChosen } from './rows.js'
import { LANGUAGES } from './samples.js'
import { Filter, fits, Screen } from './screen.js'

const TELL_MS = 5000
const STATUSES: Record<string, RegExp> = { '2xx': /^2/, '4xx': /^4/, '5xx': /^[50]/ }
const SINCE: Record<string, string> = { '': 'Any time', 1: 'Last minute', 15: 'Last 15 minutes' }

/** Short ids for the address: the beginning of the trace id, with a number where a client repeats one. */
function useIds(requests: readonly Seen[]): Map<Seen, string> {
  return useMemo(() => {
    const taken = new Set<string>()
    const name = (request: Seen): [Seen, string] => {
      const short = request.trace_id.slice(0, 8)
      const id = taken.has(short) ? `${short}~${request.number}` : short
      taken.add(id)
      return [request, id]
    }
    return new Map(requests.toReversed().map(name))
  }, [requests])
}

function useFound(route: Route, requests: readonly Seen[]): Seen[] {
  const nameOf = useNameOf()
  const { news } = useLive()
  const { status = '', operation, application, since } = route.filters
  const from = since ? (news?.now ?? 0) - Number(since) * 60_000 : 0
  return requests.filter(
    (each) =>
      (STATUSES[status]?.test(String(each.status)) ?? true) &&
      (!operation || operation === each.operation) &&
      (!application || application === nameOf(each.application_id)) &&
      (from === 0 || Date.parse(each.at) >= from) &&
      fits(route, `${each.method} ${each.path} ${each.trace_id} ${each.operation}`),
  )
}

export function Requests({ route }: { route: Route }) {
  const { session, ask, news, ...live } = useLive()
  const nameOf = useNameOf()
  const [held, setHeld] = useState<Seen[]>()
  const { act, error } = useAction()
  const requests = held ?? live.requests ?? []
  const ids = useIds(requests)
  const idOf = (request: Seen) => ids.get(request) ?? ''
  const rows = useFound(route, requests)
  const { id, filters } = route
  const first = useChosen(rows, idOf, undefined, isFailed)
  const chosen = id === undefined ? first : requests.find((each) => idOf(each) === id || each.trace_id === id)
  const hold = () => setHeld(held === undefined ? requests : undefined)
  const actions = [
    <Button key="live" class="live" aria-pressed={held === undefined} text="Live" act={hold} />,
    session.controls.faults && (
      <Button key="clear" text="Clear" act={() => act(() => ask('control request clear'))} />
    ),
  ]
  return (
    <Screen
      title="Requests"
      route={route}
      placeholder="Path, trace id, operation"
      error={error}
      filters={<Filters route={route} requests={requests} />}
      actions={actions}
    >
      <Rows
        empty={live.requests && (live.requests.length === 0 ? <NoRequest /> : <NoneFits thing="request" />)}
        caption="Requests, newest first. Times in UTC."
        rows={rows}
        chosen={chosen}
        linkOf={(request) => linkTo('requests', idOf(request), filters)}
        columns={columnsOf(nameOf)}
      />
      {chosen && <Request key={chosen.number} request={chosen} id={idOf(chosen)} route={route} />}
      {!chosen && id !== undefined && live.requests && (
        <Empty title="This request is not kept any more">
          <p>
            The last 1,000 requests are kept. Its trace id began with <code>{id}</code>.
          </p>
          <a href={linkTo('requests')}>All requests</a>
        </Empty>
      )}
      <Told count={news?.count ?? 0} />
    </Screen>
  )
}

const columnsOf = (nameOf: ReturnType<typeof useNameOf>): Column<Seen>[] => [
  ['Time UTC', 'mono dim w7', ({ at }) => [at.slice(11, 19), <Wide key="ms" text={at.slice(19, 23)} />]],
  ['Method', 'w4', ({ method }) => <Method name={method} />],
  ['Path', 'mono link', (each) => [each.path, <Dim key="query" text={queryOf(each)} />]],
  [
    'Status',
    'w6',
    ({ status, fault }) => [<Status key="status" status={status} />, fault && <Fault key="fault" />],
  ],
  ['Application', 'wide w6', ({ application_id }) => nameOf(application_id)],
  ['ms', 'number wide w4', ({ ms }) => ms.toFixed(2)],
]

const Wide = ({ text }: { text: string }) => <span class="wide">{text}</span>
const Dim = ({ text }: { text: string }) => <span class="dim">{text}</span>
const Fault = () => <Badge kind="warn fault">fault</Badge>

function Filters({ route, requests }: { route: Route; requests: readonly Seen[] }) {
  const nameOf = useNameOf()
  const { status = '', since = '' } = route.filters
  const operations = requests.flatMap(({ operation = [] }) => operation).sort()
  const applications = requests.map((each) => nameOf(each.application_id)).sort()
  const set = (name: string) => (value: string) => setFilter(route, name, value)
  return (
    <>
      <fieldset class="switch">
        <legend class="only-screen-reader">Status</legend>
        {['', ...Object.keys(STATUSES)].map((each) => (
          <label key={each}>
            <input
              type="radio"
              name="status"
              checked={status === each}
              onChange={() => set('status')(each)}
            />
            {each || 'All'}
          </label>
        ))}
      </fieldset>
      <Filter route={route} name="operation" any="Any operation" of={operations} />
      <Filter route={route} name="application" any="Any application" of={applications} />
      <Choose label="Time" of={SINCE} value={since} choose={set('since')} />
    </>
  )
}

/** Tells a screen reader of new requests, at most every five seconds. */
function Told({ count }: { count: number }) {
  const [told, setTold] = useState({ count, text: '' })
  const isNew = told.count !== count
  useEffect(() => {
    const tell = () => setTold({ count, text: `${count - told.count} new` })
    const timer = isNew ? setTimeout(tell, TELL_MS) : undefined
    return () => clearTimeout(timer)
  }, [isNew])
  return (
    <p class="only-screen-reader" aria-live="polite">
      {told.text}
    </p>
  )
}

function NoRequest() {
  const { header } = useLive().session
  const body = '{"type":"token","data":"a secret"}'
  const call = { method: 'POST', path: '/tokens', header, type: 'application/json', body }
  return (
    <Empty title="No request yet">
      <p>
        Requests of your tests appear here as they come. Point a client at <code>{location.origin}</code>, or
        send one:
      </p>
      <Terminal text={LANGUAGES.curl!(call)} />
      <a class="button primary" href={linkTo('reference', 'token-create')}>
        Send one from the reference
      </a>
    </Empty>
  )
}
