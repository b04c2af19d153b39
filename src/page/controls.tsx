/** Clock, state and faults, as far as the control plane of this vault has them. */
import { useState } from 'preact/hooks'
import type { OperationName } from '../operations/all.js'
import { type CountedRule, useAsked, useLive } from './api.js'
import { Button, Fault, Field, type Fields, Form, Heading, Shown, Table } from './parts.js'

/** Performs an operation, then `after`. */
function useAction(after: () => void) {
  const live = useLive()
  const [error, setError] = useState<string>()
  const act = (operation: OperationName, input: object = {}) => {
    live.ask(operation, input).then(
      () => {
        setError(undefined)
        after()
      },
      (caught: Error) => setError(caught.message),
    )
  }
  return { act, note: error === undefined ? null : <Fault text={error} /> }
}

export function Controls() {
  const { session } = useLive()
  const [resets, setResets] = useState(0)
  return (
    <>
      <Heading text="Controls" />
      {session.controls.state && (
        <>
          <Clock key={`clock ${resets}`} />
          <State whenReset={() => setResets(resets + 1)} />
        </>
      )}
      <Faults key={`faults ${resets}`} />
    </>
  )
}

function Clock() {
  const found = useAsked('control clock get')
  const { act, note } = useAction(found.again)
  return (
    <article>
      <h2>Clock</h2>
      {note}
      <Shown of={found}>
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
  )
}

function State({ whenReset }: { whenReset(): void }) {
  const found = useAsked('control snapshot list')
  const { act, note } = useAction(found.again)
  const reset = useAction(whenReset)
  return (
    <article>
      <h2>State</h2>
      {note}
      {reset.note}
      <p>
        <Button
          text="Reset"
          act={() =>
            confirm('Return to the state in which the vault began? Data, faults and requests are lost.') &&
            reset.act('control reset')
          }
        />
      </p>
      <Form class="row" send={(fields) => act('control snapshot create', fields)}>
        <Field label="Name" name="name" required maxLength={100} />
        <button type="submit">Keep a snapshot</button>
      </Form>
      <Shown of={found}>
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

function Faults() {
  const found = useAsked('control fault list')
  const { act, note } = useAction(found.again)
  const rules = (found.result ?? []) as CountedRule[]
  const set = (all: object[]) => act('control fault set', { rules: all })
  const bare = rules.map(({ matched: _, applied: __, ...rule }) => rule)
  return (
    <article>
      <h2>Faults</h2>
      {note}
      <Shown of={found}>
        {() =>
          rules.length === 0 ? (
            <p class="dim">None.</p>
          ) : (
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
          )
        }
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
