import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import type { TrailItem } from '../control/page-trail.js'
import { divideRefusal } from '../domain/allow-net-advice.js'
import { type Seen, useLive, useNameOf, useRead } from './api.js'
import { Failure } from './forms.js'
import { Badge, Status } from './parts.js'
import { Outcome } from './reactors.js'
import { linkTo, screenOf } from './route.js'
import { countOf, formatTime } from './text.js'

/** Returns the id of each request for addresses: the beginning of its trace id. Adds a number if the id is taken. */
export function useIds(requests: readonly Seen[]): Map<Seen, string> {
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

interface Entry {
  id: string
  at: string
  kind: string
  text: ComponentChildren
}

const KINDS: Record<TrailItem['kind'], string> = {
  log: 'Log',
  delivery: 'Delivery',
  mail: 'Mail',
  run: 'Run',
  callback: 'Callback',
  job: 'Job',
}

const STATES: Record<string, string> = {
  sent: 'good',
  done: 'good',
  waiting: 'warn',
  failed: 'bad',
  blocked: 'bad',
}
const State = ({ of, status = '' }: { of: string; status?: number | '' | undefined }) => (
  <Badge kind={STATES[of] ?? ''}>{`${of} ${status}`.trim()}</Badge>
)

type EntityProps = { type: string; id: string; name?: string | undefined }

export function EntityLink({ type, id, name = id }: EntityProps) {
  const screen = screenOf(type)
  if (screen === undefined) return <code>{id}</code>
  return (
    <a href={linkTo(screen, id)} title={id}>
      {name}
    </a>
  )
}

function Described({ of: item }: { of: TrailItem }) {
  const nameOf = useNameOf()
  if (item.kind === 'log') {
    const who = item.actor_type === 'system' ? 'the vault' : nameOf(item.actor_id, item.actor_type)
    return (
      <>
        {who}: <a href={linkTo('log', item.id)}>{item.message}</a>{' '}
        <EntityLink type={item.entity_type} id={item.entity_id} name={item.entity_name} />
      </>
    )
  }
  if (item.kind === 'delivery')
    return (
      <>
        <a href={linkTo('webhooks', item.webhook_id, { delivery: item.id })}>{item.type}</a> to{' '}
        {item.webhook ?? 'a deleted webhook'} <State of={item.state} status={item.status} />
        {item.state === 'blocked' && item.failure && (
          <span class="dim small"> {divideRefusal(item.failure).reason}</span>
        )}
      </>
    )
  if (item.kind === 'mail')
    return (
      <>
        <a href={linkTo('outbox', item.id)}>to {item.to}</a> <State of={item.state} />
      </>
    )
  if (item.kind === 'job')
    return (
      <>
        <code>{item.id}</code> <State of={item.status} />
      </>
    )
  const reactor = <a href={linkTo('reactors', item.reactor_id)}>of the reactor</a>
  if (item.kind === 'run')
    return (
      <>
        {reactor} <Outcome of={item} />
      </>
    )
  return (
    <>
      {reactor} <State of="waiting" />, {countOf(item.attempts, 'attempt')}
    </>
  )
}

type TimeLineProps = {
  of: { trace: string } | { entity: string }
  /** The id of the item in the detail. */
  current?: string | undefined
}

export function TimeLine({ of, current }: TimeLineProps) {
  const { requests = [], news } = useLive()
  const ids = useIds(requests)
  const name = JSON.stringify(of)
  // Reading a token does not change the version in the news, but adds a log record. Therefore the time line is read
  // again after each request.
  const { result, error } = useRead(`trail ${name}`, (server) => server.readTrail(of), news?.count)
  if (result === undefined) return error ? <Failure text={error} /> : <p class="dim">Loading …</p>
  const items = result.items.map((item): Entry => {
    return { id: item.id, at: item.at, kind: KINDS[item.kind], text: <Described of={item} /> }
  })
  const traces = new Set('trace' in of ? [of.trace] : result.items.map(({ trace_id }) => trace_id))
  const asked = requests.filter(({ trace_id }) => traces.has(trace_id)).reverse()
  const entries = asked.map((request): Entry => {
    const { method, path, status, at, ms } = request
    const text = (
      <>
        <a href={linkTo('requests', ids.get(request))}>
          {method} {path}
        </a>{' '}
        <Status status={status} />
      </>
    )
    // The record of a request has the time of the answer. Subtracts the duration to get the time of the request.
    const start = new Date(Date.parse(at) - Math.ceil(ms)).toISOString()
    return { id: ids.get(request) ?? '', at: start, kind: 'Request', text }
  })
  const all = [...entries, ...items].sort((a, b) => Date.parse(a.at) - Date.parse(b.at))
  return (
    <>
      {result.isCut && <p class="dim">Only the newest 100 log records are shown.</p>}
      {all.length === 0 && <p class="dim">Nothing is recorded.</p>}
      <ol class="trail" aria-label="Time line">
        {all.map(({ id, at, kind, text }) => (
          <li key={id} aria-current={id === current ? 'true' : undefined}>
            <time class="mono dim" dateTime={at} title={formatTime(at, 23)}>
              {at.slice(11, 19)}
            </time>
            <b>{kind}</b>
            <span>{text}</span>
          </li>
        ))}
      </ol>
      {asked.length === 0 && (
        <p class="dim small">
          No recorded request caused this. The server records the last 1,000 requests since its start.
        </p>
      )}
    </>
  )
}
