/**
 * The list of requests. The detail shows the reason for the answer, the rule that decided, the bodies, and the request
 * as code.
 */

import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Problem } from '../errors.js'
import { type Seen, useLive, useNameOf, useRoute } from './api.js'
import { Decisions, Why } from './decision.js'
import { Button, Copy, Tabs, useDialog } from './forms.js'
import { useKeys } from './frame.js'
import { Badge, Empty, Facts, Method, NoneFits, Status } from './parts.js'
import { useOperation } from './reference.js'
import { go, linkTo, linkToRequest, setFilter } from './route.js'
import { Rows, useChosen } from './rows.js'
import { LANGUAGES, refill } from './samples.js'
import { Detail, Filter, fits, Screen } from './screen.js'
import { ComposeDialog, NOBODY } from './send.js'
import { ApplicationLink, CodeTabs, formatJson, Json, Time } from './text.js'

const TELL_MS = 5000
const STATUSES: Record<string, RegExp> = { '2xx': /^2/, '4xx': /^4/, '5xx': /^[50]/ }
const SINCE = { 1: 'Last minute', 15: 'Last 15 minutes' }

const isFailed = ({ status }: Seen) => status === 0 || status >= 400
const queryOf = ({ query = [] }: Seen) =>
  query.length === 0 ? '' : `?${query.map((name) => `${name}=…`).join('&')}`

/** Short ids for the address: the beginning of the trace id. If a client repeats a trace id, a number is added. */
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

function useFound(requests: readonly Seen[]): Seen[] {
  const nameOf = useNameOf()
  const route = useRoute()
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

export function Requests() {
  const { session, ask, news, ...live } = useLive()
  const { id, filters } = useRoute()
  const nameOf = useNameOf()
  const [held, setHeld] = useState<Seen[]>()
  const requests = held ?? live.requests ?? []
  const ids = useIds(requests)
  const idOf = (request: Seen) => ids.get(request) ?? ''
  const rows = useFound(requests)
  const first = useChosen(rows, idOf, undefined, isFailed)
  const chosen = id === undefined ? first : requests.find((each) => idOf(each) === id || each.trace_id === id)
  const hold = () => setHeld(held === undefined ? requests : undefined)
  const actions = (
    <>
      <Button class="live" aria-pressed={held === undefined} text="Live" act={hold} />
      {session.controls.faults && <Button text="Clear" act={() => ask('control request clear')} />}
    </>
  )
  return (
    <Screen find="Path, trace id, operation" filters={<Filters requests={requests} />} actions={actions}>
      <Rows
        empty={live.requests && (live.requests.length === 0 ? <NoRequest /> : <NoneFits thing="request" />)}
        caption="Requests, newest first. Times in UTC."
        rows={rows}
        chosen={chosen}
        linkOf={(request) => linkTo('requests', idOf(request), filters)}
        columns={[
          [
            'Time UTC',
            'mono dim w7',
            ({ at }) => [at.slice(11, 19), <Wide key="ms" text={at.slice(19, 23)} />],
          ],
          ['Method', 'w4', ({ method }) => <Method name={method} />],
          ['Path', 'mono link', (each) => [each.path, <Dim key="query" text={queryOf(each)} />]],
          [
            'Status',
            'w6',
            (each) => [<Status key="status" {...each} />, each.fault && <Fault key="fault" />],
          ],
          ['Application', 'wide w6', ({ application_id }) => nameOf(application_id)],
          ['ms', 'number wide w4', ({ ms }) => ms.toFixed(2)],
        ]}
      />
      {chosen && <Request key={chosen.number} request={chosen} id={idOf(chosen)} />}
      {!chosen && id !== undefined && live.requests && (
        <Empty title="This request is not kept any more">
          <p>
            Coffer keeps the last 1,000 requests. The trace id of this request began with <code>{id}</code>.
          </p>
          <a href={linkTo('requests')}>All requests</a>
        </Empty>
      )}
      <WebhookEvent count={news?.count ?? 0} />
    </Screen>
  )
}

const Wide = ({ text }: { text: string }) => <span class="wide">{text}</span>
const Dim = ({ text }: { text: string }) => <span class="dim">{text}</span>
const Fault = () => <Badge kind="warn fault">fault</Badge>

function Filters({ requests }: { requests: readonly Seen[] }) {
  const nameOf = useNameOf()
  const route = useRoute()
  const { status = '' } = route.filters
  const operations = requests.flatMap(({ operation = [] }) => operation).sort()
  const applications = requests.map((each) => nameOf(each.application_id)).sort()
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
              onChange={() => setFilter(route, 'status', each)}
            />
            {each || 'All'}
          </label>
        ))}
      </fieldset>
      <Filter name="operation" any="Any operation" of={operations} />
      <Filter name="application" any="Any application" of={applications} />
      <Filter name="since" label="Time" any="Any time" of={SINCE} />
    </>
  )
}

/** Announces new requests to screen readers, at most every five seconds. */
function WebhookEvent({ count }: { count: number }) {
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
  const text = [
    'Requests of your tests appear here as they come. Point a client at ',
    <code key="address">{location.origin}</code>,
    ', or send one:',
  ]
  return (
    <Empty title="No request yet" text={text} command={LANGUAGES.curl!(call)}>
      <a class="button primary" href={linkTo('reference', 'token-create')}>
        Send one from the reference
      </a>
    </Empty>
  )
}

function Request({ request, id }: { request: Seen; id: string }) {
  const { session, sendRequest } = useLive()
  const show = useDialog()
  const { method, path, status, operation, application_id, decisions = [], answer, fault } = request
  const { example, type = 'application/json' } = useOperation(operation) ?? {}
  const body = request.request === undefined ? undefined : formatJson(refill(request.request, example))
  const target = path + queryOf(request)
  const problem = (isFailed(request) && answer ? answer : {}) as Partial<Problem>
  const send = async () => {
    const { trace_id } = await sendRequest({ method, target: path, application: application_id })
    go(linkToRequest(trace_id))
  }
  const draft = { method, path, type, body, application: application_id ?? NOBODY }
  const edit = () => show(<ComposeDialog draft={draft} />)
  useKeys({ e: edit })
  const none = fault ? 'The fault answered before any rule was evaluated.' : 'No rule was evaluated.'
  const sent = { 'API key': `in ${session.header}, not kept`, Query: request.query?.join(', ') }
  const answered = { Status: <Status status={status} />, 'Trace id': <code>{request.trace_id}</code> }
  const tabs = {
    Overview: () => (
      <>
        <Why request={request} problem={problem} />
        <About request={request} />
        <Kept label="Answer" value={answer} />
      </>
    ),
    Decision: () => <Decisions decisions={decisions} id={application_id} none={none} />,
    Request: () => [
      <Facts key="about" of={sent} />,
      <Kept key="body" label="Body" value={request.request} />,
    ],
    Response: () => [<Facts key="about" of={answered} />, <Kept key="body" label="Answer" value={answer} />],
    Code: () => <CodeTabs call={{ method, path: target, header: session.header, type, body }} />,
  }
  return (
    <Detail title={target} method={method} head={<Status status={status} />}>
      <div class="row">
        {body === undefined && target === path && <Button text="Send again" act={send} />}
        <Button text="Edit and send" act={edit} />
        <Copy label="Copy link" text={`${location.origin}/${linkTo('requests', id)}`} />
      </div>
      <Tabs label="About this request" tabs={tabs} />
    </Detail>
  )
}

function About({ request }: { request: Seen }) {
  const { operation, destination, destination_status = '' } = request
  const described = operation && <a href={linkTo('reference', operation.replaceAll(' ', '-'))}>{operation}</a>
  const facts = {
    Application: <ApplicationLink id={request.application_id} />,
    Operation: described ?? 'none',
    Time: <Time of={request.at} />,
    Took: `${request.ms} ms`,
    'Trace id': <code>{request.trace_id}</code>,
    Destination: destination && `${destination} ${destination_status}`,
  }
  return <Facts of={facts} />
}

function Kept({ label, value }: { label: string; value: unknown }) {
  if (value === undefined) return <p class="dim">{label}: none.</p>
  return <Json label={`${label}, without data`} value={value} isCopied />
}
