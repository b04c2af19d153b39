import { useState } from 'preact/hooks'
import type { CountedRule } from '../framework/ports/control.js'
import type { OperationName } from '../operations/all.js'
import { type Asked, useAsked, useLive } from './api.js'
import { Button, Fault, Field, type Fields, Form, Heading, Shown, Table } from './parts.js'

/** Performs an operation, then asks again for what it changes. */
function useAction(...changed: Pick<Asked<unknown>, 'again'>[]) {
  const live = useLive()
  const [error, setError] = useState<string>()
  const act = async (operation: OperationName, input: object = {}) => {
    const failed = await live.ask(operation, input).then(
      () => undefined,
      (caught: Error) => caught.message,
    )
    setError(failed)
    if (failed === undefined) for (const { again } of changed) again()
  }
  return { act, note: error === undefined ? null : <Fault text={error} /> }
}

export function Controls() {
  const { session } = useLive()
  const faults = useAsked('control fault list')
  return (
    <>
      <Heading text="Controls" />
      {session.controls.state && <State faults={faults} />}
      <Faults found={faults} />
    </>
  )
}

const RESET = 'Return to the state in which the vault began? Data, faults and requests are lost.'

function State({ faults }: { faults: Asked<unknown> }) {
  const clock = useAsked('control clock get')
  const snapshots = useAsked('control snapshot list')
  const { act, note } = useAction(clock, snapshots, faults)
  return (
    <>
      {note}
      <article>
        <h2>Clock</h2>
        <Shown of={clock}>
          {({ mode, now }) => (
            <p>
              <code>{now}</code> ({mode})
            </p>
          )}
        </Shown>
        <div class="row">
          {['15m', '1h', '1d', '30d'].map((by) => (
            <Button key={by} text={`+ ${by}`} act={() => act('control clock advance', { by })} />
          ))}
          <Button text="Freeze" act={() => act('control clock set', { mode: 'frozen' })} />
          <Button text="Real time" act={() => act('control clock set', { mode: 'real' })} />
        </div>
      </article>
      <article>
        <h2>State</h2>
        <Button text="Reset" act={() => confirm(RESET) && act('control reset')} />
        <Form class="row" send={(fields) => act('control snapshot create', fields)}>
          <Field label="Name" name="name" required maxLength={100} />
          <button type="submit">Keep a snapshot</button>
        </Form>
        <Shown of={snapshots}>
          {(names) => (
            <div class="row">
              {names.map((name) => (
                <Button
                  key={name}
                  text={`Return to ${name}`}
                  act={() => act('control snapshot restore', { name })}
                />
              ))}
            </div>
          )}
        </Shown>
      </article>
    </>
  )
}

const KINDS = ['status', 'delay', 'drop', 'cut', 'lose'] as const

function readRule({ kind, operation, path, status, delay_ms, times }: Fields): object {
  return {
    kind,
    ...(operation && { operation }),
    ...(path && { path }),
    ...(kind === 'status' && { status: Number(status ?? 503) }),
    ...(kind === 'delay' && { delay_ms: Number(delay_ms ?? 1000) }),
    ...(times && { times: Number(times) }),
  }
}

function Faults({ found }: { found: Asked<unknown> }) {
  const { act, note } = useAction(found)
  const rules = (found.result ?? []) as CountedRule[]
  const set = (all: object[]) => act('control fault set', { rules: all })
  const bare = rules.map(({ matched: _, applied: __, ...rule }) => rule)
  return (
    <article>
      <h2>Faults</h2>
      {note}
      <Shown of={found}>
        {() => (
          <Table
            label="Faults"
            head={['Rule', 'Fits', 'Applied', 'Remove']}
            rows={rules.map((rule, at) => [
              <code key="rule">{JSON.stringify(bare[at])}</code>,
              rule.matched,
              rule.applied,
              <Button
                key="remove"
                aria-label={`Remove fault ${at + 1}`}
                text="Remove"
                act={() => set(bare.toSpliced(at, 1))}
              />,
            ])}
          />
        )}
      </Shown>
      <Form class="row" send={(fields) => set([...bare, readRule(fields)])}>
        <label>
          Kind{' '}
          <select name="kind">
            {KINDS.map((kind) => (
              <option key={kind}>{kind}</option>
            ))}
          </select>
        </label>
        <Field label="Operation" name="operation" placeholder="token create" />
        <Field label="Path" name="path" placeholder="/tokens/*" />
        <Field label="Status" name="status" type="number" min={400} max={599} placeholder="503" />
        <Field label="Delay in ms" name="delay_ms" type="number" min={1} placeholder="1000" />
        <Field label="Times" name="times" type="number" min={1} placeholder="always" />
        <button type="submit">Add the fault</button>
      </Form>
    </article>
  )
}
