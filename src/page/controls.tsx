import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { CountedRule, FaultRule } from '../framework/ports/control.js'
import type { OperationName } from '../operations/all.js'
import { useAction, useAsked, useLive } from './api.js'
import { Button, Choose, Confirm, Field, type Fields, Form } from './forms.js'
import { Badge, Empty, formatTime, Table, Terminal } from './parts.js'
import type { Route } from './route.js'
import { Screen } from './screen.js'

type Act = (operation: OperationName, input?: object) => Promise<boolean>

export function Controls({ route }: { route: Route }) {
  const { session, ask } = useLive()
  const [round, setRound] = useState(0)
  const { act, error } = useAction()
  const perform: Act = (operation, input) =>
    act(() => ask(operation, input)).finally(() => setRound((now) => now + 1))
  return (
    <Screen
      title="Controls"
      route={route}
      error={error}
      kind="page"
      filters={
        <span class="dim small">
          What you change here is the same for your tests: <code>/_coffer/</code>, <code>coffer control</code>
        </span>
      }
    >
      <div class="columns">
        <div class="stack">
          {session.controls.state ? (
            <ClockCard act={perform} />
          ) : (
            <Empty title="This vault has no clock and no snapshots">
              <p>It lies on a disk, and a clock or a reset would damage it. Serve one in memory:</p>
              <Terminal text="coffer serve --ephemeral" />
            </Empty>
          )}
          <Faults key={`faults ${round}`} act={perform} />
        </div>
        {session.controls.state && (
          <div class="stack">
            <State key={`state ${round}`} act={perform} />
            <Forks act={perform} />
          </div>
        )}
      </div>
    </Screen>
  )
}

interface CardProps {
  title: string
  actions?: ComponentChildren
  children: ComponentChildren
}

function Card({ title, actions, children }: CardProps) {
  return (
    <section class="card stack" aria-label={title}>
      <div class="head">
        <h2>{title}</h2>
        {actions}
      </div>
      {children}
    </section>
  )
}

const STEPS: Record<string, string> = { '15m': '+ 15 min', '1h': '+ 1 h', '1d': '+ 1 d', '30d': '+ 30 d' }

function ClockCard({ act }: { act: Act }) {
  const { news } = useLive()
  const { mode = 'real', now = '' } = news?.clock ?? {}
  const set = (input: object) => act('control clock set', input)
  return (
    <Card title="Clock" actions={<Badge kind={mode === 'real' ? 'push' : 'push warn'}>{mode}</Badge>}>
      <p class="big">
        <time dateTime={now}>{formatTime(now)}</time>
      </p>
      <div class="row">
        {Object.entries(STEPS).map(([by, text]) => (
          <Button key={by} text={text} act={() => act('control clock advance', { by })} />
        ))}
        {mode === 'frozen' ? (
          <Button text="Let it run" act={() => set({ mode: 'offset' })} />
        ) : (
          <Button text="Freeze" act={() => set({ mode: 'frozen' })} />
        )}
        {mode !== 'real' && <Button text="Real time" act={() => set({ mode: 'real' })} />}
      </div>
      <Form
        class="form"
        send={({ at }) => set({ mode: mode === 'frozen' ? 'frozen' : 'offset', at: `${at}Z` })}
      >
        <Field label="Or go to (UTC)" name="at" type="datetime-local" step="1" required grows />
        <button type="submit">Go to this time</button>
      </Form>
      <p class="dim small">Expiry, invitations and sessions follow this clock.</p>
    </Card>
  )
}

const PRESETS: Record<string, FaultRule> = {
  '503, once': { kind: 'status', status: 503, times: 1 },
  '503, always': { kind: 'status', status: 503 },
  '429 with Retry-After': { kind: 'status', status: 429, retry_after: 2 },
  'Slow: 2 s': { kind: 'delay', delay_ms: 2000 },
  'Every third fails': { kind: 'status', status: 500, every: 3 },
  'Times out': { kind: 'delay', delay_ms: 60_000 },
  'Drop before the work': { kind: 'drop', times: 1 },
  'Lose the answer': { kind: 'lose', times: 1 },
  'Cut the answer': { kind: 'cut', times: 1 },
}

const KINDS: Record<string, string> = {
  status: 'answers with a status',
  delay: 'waits',
  drop: 'drops the connection',
  cut: 'cuts the answer',
  lose: 'loses the answer',
  destination: 'the destination fails',
}

/** `Answers 503 to token create, the first 3 requests` */
function describeFault({
  kind,
  status,
  delay_ms = 0,
  retry_after,
  bytes,
  destination,
  operation,
  method,
  path,
  headers,
  body,
  times,
  every,
}: FaultRule): string {
  const whose = [operation, method, path].filter(Boolean).join(' ') || 'any request'
  const conditions = Object.entries({ ...headers, ...body }).map(
    ([name, value]) => ` with ${name} = ${value}`,
  )
  const what: Record<FaultRule['kind'], string> = {
    status: `Answers ${status}${retry_after ? `, Retry-After ${retry_after} s,` : ''} to `,
    delay: `Waits ${delay_ms / 1000} s before `,
    drop: 'Drops the connection, before the work, of ',
    cut: `Cuts the answer${bytes === undefined ? '' : ` after ${bytes} bytes`} of `,
    lose: 'Loses the answer, after the work, of ',
    destination: `The destination answers ${JSON.stringify(destination)} to `,
  }
  const how = times
    ? `, the first ${times === 1 ? 'request' : `${times} requests`}`
    : every
      ? `, one of ${every} requests`
      : ', always'
  return what[kind] + whose + conditions.join('') + how
}

function readRule({ kind, operation, path, status, delay_ms, destination, times }: Fields): object {
  return {
    kind,
    ...(operation && { operation }),
    ...(path && { path }),
    ...(kind === 'status' && { status: Number(status ?? 503) }),
    ...(kind === 'delay' && { delay_ms: Number(delay_ms ?? 1000) }),
    ...(kind === 'destination' && { destination: destination ?? 'timeout' }),
    ...(times && { times: Number(times) }),
  }
}

function Faults({ act }: { act: Act }) {
  const [kind, setKind] = useState('status')
  const rules = (useAsked('control fault list').result ?? []) as CountedRule[]
  const bare = rules.map(({ matched: _, applied: __, ...rule }) => rule)
  const set = (all: object[]) => act('control fault set', { rules: all })
  const rows = rules.map((rule, at) => {
    const remove = () => set(bare.toSpliced(at, 1))
    const button = <Button class="quiet" text="Remove" aria-label={`Remove fault ${at + 1}`} act={remove} />
    return [describeFault(rule), rule.matched, rule.applied, button]
  })
  const actions = [
    <Badge key="on" kind="warn">
      {rules.length} on
    </Badge>,
    <Button key="none" class="push" text="Remove all" act={() => act('control fault clear')} />,
  ]
  return (
    <Card title="Faults" actions={rules.length > 0 && actions}>
      {rules.length > 0 && (
        <Table head={['What happens', 'Fits', 'Applied', 'Actions']} rows={rows} right={1} />
      )}
      <h3>Add one</h3>
      <div class="row">
        {Object.entries(PRESETS).map(([text, rule]) => (
          <Button key={text} text={text} act={() => set([...bare, rule])} />
        ))}
      </div>
      <Form class="form" send={(fields) => set([...bare, readRule(fields)])}>
        <Choose label="Kind" name="kind" isShown of={KINDS} value={kind} choose={setKind} />
        {kind === 'status' && (
          <Field label="Status" name="status" type="number" min={400} max={599} placeholder="503" />
        )}
        {kind === 'delay' && (
          <Field label="Delay in ms" name="delay_ms" type="number" min={1} placeholder="1000" />
        )}
        {kind === 'destination' && (
          <Field label="It answers" name="destination" placeholder="timeout" size={10} />
        )}
        <Field label="Operation" name="operation" placeholder="token create" size={12} />
        <Field label="Path" name="path" placeholder="/tokens/*" size={10} />
        <Field label="First requests" name="times" type="number" min={1} placeholder="all" />
        <button type="submit" class="primary">
          Add fault
        </button>
      </Form>
    </Card>
  )
}

function State({ act }: { act: Act }) {
  const [isResetting, setResetting] = useState(false)
  const { facts, requests = [] } = useLive()
  const names = useAsked('control snapshot list').result ?? []
  const rows = names.map((name) => [
    name,
    <span key="actions" class="row end">
      <Button
        text="Return"
        aria-label={`Return to ${name}`}
        act={() => act('control snapshot restore', { name })}
      />
      <Button
        class="quiet"
        text="Delete"
        aria-label={`Delete ${name}`}
        act={() => act('control snapshot delete', { name })}
      />
    </span>,
  ])
  const counts = `${facts?.counts.tokens ?? 0} tokens, ${requests.length} requests`
  return (
    <Card title="State">
      <Form class="form" send={(fields) => act('control snapshot create', fields)}>
        <Field
          label="Name of a snapshot"
          name="name"
          required
          maxLength={100}
          placeholder="after-sign-up"
          grows
        />
        <button type="submit">Keep a snapshot</button>
      </Form>
      {rows.length > 0 && <Table head={['Snapshot', 'Actions']} rows={rows} right={1} />}
      <hr />
      <div class="row">
        <Button class="danger" text="Reset …" act={() => setResetting(true)} />
        <span class="dim">Back to the state in which the vault began.</span>
      </div>
      {isResetting && (
        <Confirm
          title="Reset the vault?"
          text={`${counts}, the faults and the time of the clock go. Snapshots stay.`}
          verb="Reset"
          act={() => act('control reset')}
          close={() => setResetting(false)}
        />
      )}
    </Card>
  )
}

function Forks({ act }: { act: Act }) {
  const { news, place, setPlace } = useLive()
  const remove = (id: string) => {
    if (place.fork === id) setPlace({})
    return act('control fork delete', { id })
  }
  const rows = (news?.forks ?? []).map(({ id, name = id.slice(0, 8), requests }) => [
    <span key="name" class="row">
      <code title={id}>{name}</code> {place.fork === id && <Badge kind="info">shown</Badge>}
    </span>,
    requests,
    <span key="actions" class="row end">
      {place.fork !== id && (
        <Button text="Show" aria-label={`Show fork ${name}`} act={() => setPlace({ fork: id })} />
      )}
      <Button class="quiet" text="Delete" aria-label={`Delete fork ${name}`} act={() => remove(id)} />
    </span>,
  ])
  const create = (fields: Fields) => act('control fork create', fields)
  return (
    <Card title="Forks">
      <p class="dim">
        A copy of the vault for each parallel test worker. The page shows the one that you choose.
      </p>
      {rows.length > 0 && <Table head={['Fork', 'Requests', 'Actions']} rows={rows} right={1} />}
      {place.fork === undefined && (
        <Form class="form" send={create}>
          <Field label="Name of a fork" name="name" maxLength={100} placeholder="worker-2" grows />
          <button type="submit">New fork</button>
        </Form>
      )}
    </Card>
  )
}
