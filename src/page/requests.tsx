import { useEffect, useState } from 'preact/hooks'
import type { Facts } from '../control/page-work.js'
import { type Seen, useAsked, useCallerOf, useLive, useRoute } from './api.js'
import { DataSeen, Decisions, describeFailure, isByGrants, Why } from './decision.js'
import { Button, Confirm, Copy, Tabs, useDialog } from './forms.js'
import { useKeys } from './frame.js'
import { Badge, Empty, Facts as FactList, Method, NoneFits, Status } from './parts.js'
import { Outcome, RunOfRequest } from './reactors.js'
import { describeDraft, markPath, refill, reproduce } from './recorded.js'
import { useOperation } from './reference.js'
import { createdBy, go, linkTo, linkToRequest, setFilter } from './route.js'
import { Rows, useChosen } from './rows.js'
import { LANGUAGES, type ProxyHeader } from './samples.js'
import { Detail, Filter, fits, Missing, Screen } from './screen.js'
import { ComposeDialog, NOBODY, OWN_KEY } from './send.js'
import { ApplicationLink, CodeTabs, countOf, formatJson, Json, Time } from './text.js'
import { EntityLink, TimeLine, useIds } from './trail.js'

const TELL_MS = 5000
/** The list shortens UUIDs in paths, so that the row has room for the reason of a failure. */
const UUID = /([0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g
const STATUSES: Record<string, RegExp> = { '2xx': /^2/, '4xx': /^4/, '5xx': /^[50]/ }

const isFailed = ({ status }: Seen) => status === 0 || status >= 400

/** Only a request with a run in the background has an outcome. */
function useRunOf() {
  const { facts } = useLive()
  return ({ trace_id, status }: Seen) => (status === 202 ? facts?.runs[trace_id] : undefined)
}
const queryOf = ({ query = [] }: Seen) =>
  query.length === 0 ? '' : `?${query.map((name) => `${name}=…`).join('&')}`

/** Returns the ids in the bodies, for example the id of the created token. */
function idsOf({ request, answer }: Seen): string[] {
  return [request, answer].flatMap((body) => {
    const { id } = (typeof body === 'object' && body !== null ? body : {}) as { id?: unknown }
    return typeof id === 'string' ? [id] : []
  })
}

function useFound(requests: readonly Seen[]): Seen[] {
  const callerOf = useCallerOf()
  const runOf = useRunOf()
  const route = useRoute()
  const { status = '', operation, application } = route.filters
  const hasStatus = (each: Seen) =>
    [each.status, runOf(each)?.status].some((one) => STATUSES[status]?.test(String(one)) ?? true)
  return requests.filter(
    (each) =>
      hasStatus(each) &&
      (!operation || operation === each.operation) &&
      (!application || application === callerOf(each)) &&
      fits(route, `${each.method} ${each.path} ${each.trace_id} ${each.operation} ${idsOf(each).join(' ')}`),
  )
}

function describeLive(lost: ReturnType<typeof useLive>['lost']): string {
  if (lost === undefined) return 'Live'
  return lost.isSignedOut ? 'Signed out' : 'Server stopped'
}

export function Requests() {
  const { session, ask, news, ...live } = useLive()
  const { id, filters } = useRoute()
  const callerOf = useCallerOf()
  const show = useDialog()
  const [held, setHeld] = useState<Seen[]>()
  const requests = held ?? live.requests ?? []
  const ids = useIds(requests)
  const idOf = (request: Seen) => ids.get(request) ?? ''
  const rows = useFound(requests)
  const runOf = useRunOf()
  const hasFailed = (each: Seen) => isFailed(each) || (runOf(each)?.status ?? 0) >= 400
  const first = useChosen(rows, idOf, undefined, hasFailed)
  const chosen = id === undefined ? first : requests.find((each) => idOf(each) === id || each.trace_id === id)
  const hold = () => setHeld(held === undefined ? requests : undefined)
  const waiting = (live.requests?.length ?? 0) - requests.length
  const leave = () =>
    show(
      <Confirm
        title={`Delete ${countOf(live.requests?.length ?? 0, 'request')}?`}
        text="The tokens and the log stay. Tests can no longer find these requests."
        verb="Delete"
        act={() => ask('control request clear').then(() => [setHeld(undefined), go(linkTo('requests'))])}
      />,
    )
  const actions = (
    <>
      <Button
        class={held || live.lost ? '' : 'live'}
        aria-pressed={held === undefined}
        text={held ? `Paused, ${Math.max(0, waiting)} new` : describeLive(live.lost)}
        of={held ? ': continue' : ': pause'}
        act={hold}
      />
      {session.controls.faults && requests.length > 0 && <Button text="Delete all requests …" act={leave} />}
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
          [
            'Path',
            'link',
            (each) => [
              <Ended key="run" of={runOf(each)} />,
              <span key="path" class="mono">
                {each.path.replaceAll(UUID, '$1…')}
              </span>,
              <Dim key="query" text={queryOf(each)} />,
              isFailed(each) && <Dim key="why" text={` ${describeFailure(each)}`} />,
            ],
          ],
          [
            'Status',
            rows.some(({ fault }) => fault !== undefined) ? 'w6' : 'w4',
            (each) => [<Status key="status" {...each} />, each.fault && <Fault key="fault" />],
          ],
          ['Caller', 'wide w8', callerOf],
          ['ms', 'number wide w4', ({ ms }) => ms.toFixed(2)],
        ]}
      />
      {chosen && <Request key={chosen.number} request={chosen} id={idOf(chosen)} />}
      {!chosen && id !== undefined && live.requests && (
        <Missing
          thing="request"
          id={id}
          why={describeMissing(news?.count ?? 0, requests.length, (news?.forks ?? []).length)}
        />
      )}
      {news && <NewRequests count={news.count} />}
    </Screen>
  )
}

/** `count`: all requests since the start of the server. `kept`: the number of stored requests. */
function describeMissing(count: number, kept: number, forks: number): string {
  if (count > kept)
    return `The server keeps the last 1,000 requests. This request is older, or it was deleted.`
  const fork = forks > 0 ? ', or the request belongs to a fork' : ''
  return `This server has not received the request. The server may have been restarted${fork}.`
}

const Wide = ({ text }: { text: string }) => <span class="wide">{text}</span>
const Dim = ({ text }: { text: string }) => <span class="dim">{text}</span>
const Ended = ({ of }: { of: Facts['runs'][string] | undefined }) =>
  of && (
    <>
      <span class="only-screen-reader">Its run: </span>
      <Outcome of={of} />{' '}
    </>
  )
const Fault = () => <Badge kind="warn fault">fault</Badge>

function Filters({ requests }: { requests: readonly Seen[] }) {
  const callerOf = useCallerOf()
  const route = useRoute()
  const { status = '' } = route.filters
  const operations = requests.flatMap(({ operation = [] }) => operation).sort()
  const callers = requests.map(callerOf).sort()
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
      <Filter name="application" label="Caller" any="Any caller" of={callers} />
    </>
  )
}

/**
 * Announces new requests to screen readers at most every five seconds. Requests from before the page was loaded are not
 * new.
 */
function NewRequests({ count }: { count: number }) {
  const [told, setTold] = useState({ count, text: '' })
  const isNew = told.count !== count
  useEffect(() => {
    // A smaller count than before means that the server was restarted.
    const text = count > told.count ? `${count - told.count} new` : ''
    const tell = () => setTold({ count, text })
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
  const { origin } = location
  const call = { origin, method: 'POST', path: '/tokens', header, type: 'application/json', body }
  const text = [
    'Requests of your tests appear here as they come. Point a client at ',
    <code key="address">{location.origin}</code>,
    ', or send a request:',
  ]
  return (
    <Empty title="No request yet" text={text} command={LANGUAGES.curl!(call)}>
      <a class="button primary" href={linkTo('reference', 'token-create')}>
        Send one from the reference
      </a>
    </Empty>
  )
}

/**
 * The key of a proxy is not recorded. If only one proxy has this destination, the id of this proxy replaces the key. A
 * call by id needs an API key.
 */
function useProxyHeader({
  proxy_header: header,
  destination,
  application_id,
}: Seen): ProxyHeader | undefined {
  const isByKey = header?.endsWith('-KEY') === true
  const { result } = useAsked('proxy list', isByKey ? { size: 100 } : { id: ['-'], size: 1 })
  if (header === undefined) return undefined
  if (!isByKey) return { header, value: destination }
  const fitting = (result?.data ?? []).filter((each) => new URL(each.destination_url).href === destination)
  return { header, value: fitting.length === 1 && application_id ? fitting[0]!.id : undefined }
}

function Request({ request, id }: { request: Seen; id: string }) {
  const { session, sendRequest } = useLive()
  const show = useDialog()
  const { method, path, status, operation, application_id, key_header, answer } = request
  const proxy = useProxyHeader(request)
  const { example, template, type = 'application/json' } = useOperation(operation) ?? {}
  const body = request.request === undefined ? undefined : formatJson(refill(request.request, example))
  const copied = reproduce(request, example)
  const target = path + queryOf(request)
  const [, reactor] = /^\/reactors\/([^/]+)\/react(?:-async)?$/.exec(path) ?? []
  const send = async () => {
    const { trace_id } = await sendRequest({ method, target: path, application: application_id, proxy })
    go(linkToRequest(trace_id))
  }
  const nobody = key_header === undefined ? NOBODY : OWN_KEY
  const draft = {
    ...{ method, type, body, proxy, query: request.query ?? [] },
    ...{ path: markPath(path), application: application_id ?? nobody },
  }
  const note = describeDraft(request.request, draft.path, body)
  const edit = () => show(<ComposeDialog draft={draft} note={note} />)
  // Coffer records no key. A request that had a key can be sent again only if its application is known.
  const hasAll = target === draft.path && (application_id !== undefined || key_header === undefined)
  const canRepeat = body === undefined && hasAll && (proxy === undefined || proxy.value !== undefined)
  const isMisplaced =
    request.key_state === 'none' && key_header !== undefined && key_header !== session.header
  useKeys({ e: edit })
  const sent = { 'API key': describeKey(request), Query: request.query?.join(', ') }
  const tabs = {
    Overview: (open: (title: string) => void) => (
      <>
        <Why request={request} />
        {status === 403 && isByGrants(request) && <Decisions request={request} />}
        <DataSeen request={request} show={() => open('Decision')} />
        {reactor !== undefined && (
          <RunOfRequest id={reactor} traceId={request.trace_id} isLater={status === 202} />
        )}
        <About request={request} />
        <Kept label="Answer" value={answer} />
      </>
    ),
    'Time line': () => <TimeLine of={{ trace: request.trace_id }} current={id} />,
    Decision: () => <Decisions request={request} />,
    Request: () => [
      <FactList key="about" of={sent} />,
      <Kept key="body" label="Body" value={request.request} />,
    ],
    Code: () => (
      <>
        <CodeTabs
          call={{
            method,
            path: path + copied.query,
            ...((request.key_state !== 'none' || isMisplaced) && { header: session.header }),
            proxy,
            type,
            body: copied.body,
            operation,
            template,
          }}
        />
        {isMisplaced && (
          <p>
            The request had its key in {key_header}, which this server does not read. The code sends it in{' '}
            {session.header}.
          </p>
        )}
        {copied.replaced.length > 0 && (
          <p class="dim small">
            Coffer records no data. The code has made-up values in place of:{' '}
            {copied.replaced.map((name) => [<mark key={name}>{name}</mark>, ' '])}
          </p>
        )}
      </>
    ),
  }
  return (
    <Detail title={target} method={method} head={<Status status={status} />}>
      <div class="row">
        {canRepeat && <Button text="Send again" act={send} />}
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
  const [created] = request.status === 201 ? idsOf({ ...request, request: undefined }) : []
  const facts = {
    Created: created && <EntityLink type={createdBy(operation)} id={created} />,
    Application: <ApplicationLink id={request.application_id} />,
    Operation: described ?? 'none',
    Time: <Time of={request.at} />,
    Took: `${request.ms} ms`,
    'Trace id': <code>{request.trace_id}</code>,
    Destination: destination && `${destination} ${destination_status}`,
  }
  return <FactList of={facts} />
}

function describeKey({ key_header: header, key_state: state }: Seen): string {
  if (header === undefined) return 'none'
  const about = {
    none: ', which this server does not read',
    unknown: ', no application has this key',
    not_examined: ', not examined',
  }
  return `in ${header}${state === undefined ? '' : about[state]}. The key itself is not recorded.`
}

function Kept({ label, value }: { label: string; value: unknown }) {
  if (value === undefined) return <p class="dim">{label}: none.</p>
  return <Json label={`${label}, without data`} value={value} isCopied />
}
