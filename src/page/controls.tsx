import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { CountedRule } from '../framework/ports/control.js'
import { useAsked, useLive } from './api.js'
import { describeFault, KINDS, OWN_FIELDS, PRESETS, readRule } from './faults.js'
import type { FieldProps, Fields } from './forms.js'
import { Button, Choose, Confirm, Field, Form, Submit, useDialog } from './forms.js'
import { Badge, Empty, Table } from './parts.js'
import { Screen } from './screen.js'
import { countOf, formatTime } from './text.js'

export function Controls() {
  const { controls } = useLive().session
  return (
    <Screen
      kind="page"
      filters={
        <span class="dim small">
          Your tests can change these settings too: <code>/_coffer/</code>, <code>coffer control</code>
        </span>
      }
    >
      <div class="columns">
        <div class="stack">
          {controls.clock && <ClockCard />}
          <Faults />
          {!controls.state && (
            <Empty
              title={
                controls.clock ? 'This vault has no snapshots' : 'This vault has no clock and no snapshots'
              }
              text={`This vault is on disk, and ${controls.clock ? '' : 'a changed clock or '}a reset could destroy its data. Serve a vault in memory:`}
              command="coffer serve --ephemeral"
            />
          )}
        </div>
        {controls.state && (
          <div class="stack">
            <State />
            <Forks />
          </div>
        )}
      </div>
    </Screen>
  )
}

type CardProps = { title: string; actions?: ComponentChildren; children: ComponentChildren }

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

function ClockCard() {
  const { news, ask } = useLive()
  const { mode = 'real', now = '' } = news?.clock ?? {}
  const set = (input: object) => ask('control clock set', input)
  return (
    <Card title="Clock" actions={<Badge kind={mode === 'real' ? 'push' : 'push warn'}>{mode}</Badge>}>
      <p class="big">
        <time dateTime={now}>{formatTime(now)} UTC</time>
      </p>
      <div class="row">
        {Object.entries(STEPS).map(([by, text]) => (
          <Button key={by} text={text} act={() => ask('control clock advance', { by })} />
        ))}
        {mode === 'frozen' ? (
          <Button text="Let it run" act={() => set({ mode: 'offset' })} />
        ) : (
          <Button text="Freeze" act={() => set({ mode: 'frozen' })} />
        )}
        {mode !== 'real' && <Button text="Real time" act={() => set({ mode: 'real' })} />}
      </div>
      <OneField
        {...{ label: 'Or go to (UTC)', name: 'at', type: 'datetime-local', step: '1', required: true }}
        verb="Go to this time"
        send={({ at }) => set({ mode: mode === 'frozen' ? 'frozen' : 'offset', at: `${at}Z` })}
      />
      <p class="dim small">Expiry, invitations and sessions follow this clock.</p>
    </Card>
  )
}

function Faults() {
  const { ask } = useLive()
  const [kind, setKind] = useState('status')
  const own = OWN_FIELDS[kind]
  const rules = (useAsked('control fault list').result ?? []) as CountedRule[]
  const bare = rules.map(({ matched: _, applied: __, ...rule }) => rule)
  const set = (all: object[]) => ask('control fault set', { rules: all })
  const actions = [
    <Badge key="on" kind="warn">
      {rules.length} on
    </Badge>,
    <Button key="none" class="push" text="Remove all" act={() => ask('control fault clear')} />,
  ]
  return (
    <Card title="Faults" actions={rules.length > 0 && actions}>
      <Table
        rows={rules}
        columns={[
          ['What happens', '', describeFault],
          ['Matched', 'number', ({ matched }) => matched],
          ['Applied', 'number', ({ applied }) => applied],
        ]}
        actions={(_, at) => [['Remove', ` fault ${at + 1}`, () => set(bare.toSpliced(at, 1)), 'quiet']]}
      />
      <h3>Add one</h3>
      <div class="row">
        {Object.entries(PRESETS).map(([text, rule]) => (
          <Button key={text} text={text} act={() => set([...bare, rule])} />
        ))}
      </div>
      <details>
        <summary>Another fault</summary>
        <Form key={rules.length} class="form" send={(fields) => set([...bare, readRule(fields)])}>
          <Choose label="Kind" name="kind" isShown of={KINDS} value={kind} choose={setKind} />
          {own && <Field key={kind} {...own} />}
          <Field label="Operation" name="operation" placeholder="token create" size={12} />
          <Field label="Path" name="path" placeholder="/tokens/*" size={10} />
          <Field label="First requests" name="times" type="number" min={1} placeholder="all" />
          <Submit text="Add fault" kind="primary" />
        </Form>
      </details>
    </Card>
  )
}

type OneFieldProps = FieldProps & { verb: string; send(fields: Fields): unknown }

const OneField = ({ verb, send, ...field }: OneFieldProps) => (
  <Form class="form" send={send}>
    <Field grows {...field} />
    <Submit text={verb} />
  </Form>
)

function State() {
  const { facts, requests = [], ask } = useLive()
  const show = useDialog()
  const names = useAsked('control snapshot list').result ?? []
  const tokens = countOf(facts?.counts.tokens ?? 0, 'token')
  const leave = (name: string) => (
    <Confirm
      title={`Delete the snapshot ${name}?`}
      text="The vault can no longer return to this state."
      verb="Delete"
      act={() => ask('control snapshot delete', { name })}
    />
  )
  const reset = (
    <Confirm
      title="Reset the vault?"
      text={`This replaces all data (${tokens}) with the data with which the vault began. It also removes ${countOf(requests.length, 'request')} and the faults, and sets the clock to the real time. Snapshots stay.`}
      verb="Reset"
      act={() => ask('control reset')}
    />
  )
  return (
    <Card title="State">
      <OneField
        key={names.length}
        {...{
          label: 'Name of a snapshot',
          name: 'name',
          placeholder: 'after-sign-up',
          maxLength: 100,
          required: true,
        }}
        verb="Keep a snapshot"
        send={(fields) => ask('control snapshot create', fields)}
      />
      <Table
        rows={names}
        columns={[['Snapshot', '', (name) => name]]}
        actions={(name) => [
          ['Restore', ` ${name}`, () => ask('control snapshot restore', { name })],
          ['Delete …', ` ${name}`, () => show(leave(name)), 'quiet'],
        ]}
      />
      <hr />
      <div class="row">
        <Button class="danger" text="Reset …" act={() => show(reset)} />
        <span class="dim">Restores the state with which the vault began.</span>
      </div>
    </Card>
  )
}

function Forks() {
  const { news, place, setPlace, ask, deleteFork } = useLive()
  const forks = (news?.forks ?? []).map(({ name, ...each }) => ({
    name: name ?? each.id.slice(0, 8),
    ...each,
  }))
  const isShown = (id: string) => place.fork === id
  const show = useDialog()
  const remove = async (id: string) => {
    await deleteFork(id)
    if (isShown(id)) setPlace({})
  }
  const leave = ({ id, name }: { id: string; name: string }) =>
    show(
      <Confirm
        title={`Delete the fork ${name}?`}
        text="Its tokens and its requests are deleted. The original vault stays."
        verb="Delete"
        act={() => remove(id)}
      />,
    )
  const label = ({ id, name }: { id: string; name: string }) => (
    <span class="row">
      <code title={id}>{name}</code> {isShown(id) && <Badge kind="info">shown</Badge>}
    </span>
  )
  return (
    <Card title="Forks">
      <p class="dim">
        A copy of the vault for each parallel test worker. The page shows the copy that you choose.
      </p>
      <Table
        rows={forks}
        columns={[
          ['Fork', '', label],
          ['Requests', 'number', ({ requests }) => requests],
        ]}
        actions={({ id, name }) => [
          !isShown(id) && ['Show', ` fork ${name}`, () => setPlace({ fork: id })],
          ['Delete …', ` fork ${name}`, () => leave({ id, name }), 'quiet'],
        ]}
      />
      {place.fork === undefined && (
        <OneField
          {...{ label: 'Name of a fork', name: 'name', placeholder: 'worker-2', maxLength: 100 }}
          verb="New fork"
          send={(fields) => ask('control fork create', fields)}
        />
      )}
    </Card>
  )
}
