import { useState } from 'preact/hooks'
import type { ResultOf } from '../operations/all.js'
import { useAsked, useLive } from './api.js'
import { argNames } from './arg-names.js'
import { Button, Check, Confirm, EditDialog, Failure, Field, TextArea, useDialog } from './forms.js'
import { Badge, Empty, Facts, Note, Table } from './parts.js'
import { go, linkTo } from './route.js'
import { Detail, Item, ItemScreen, useNamed, usePaging } from './screen.js'
import { Composer } from './send.js'
import { Code, formatTime, RequestLink } from './text.js'

type Reactor = ResultOf<'reactor list'>['data'][number]
type Run = ResultOf<'reactor scrubbed-logs'>[number]

const LOOKED_AT = 20
/** The server lists at most this many runs of a reactor. */
const KEPT = 100

const SAMPLE = 'module.exports = async ({ args }) => {\n  return { raw: { hello: args.name } }\n}\n'

export function Reactors() {
  const show = useDialog()
  return (
    <ItemScreen
      thing="reactor"
      find="Name"
      asked={useAsked('reactor list', usePaging())}
      named={useNamed<Reactor>('reactor list')}
      actions={<Button class="primary" text="New reactor" act={() => show(<Edit of={{}} />)} />}
      textOf={({ name }) => name}
      item={({ name, formula }) => <Item name={name} about={formula ? `formula ${formula.name}` : 'code'} />}
      detail={ReactorDetail}
      empty={[
        'No reactor yet',
        'A reactor is code that runs on the data of tokens, in a sandbox.',
        'coffer reactor create --name charge-card --code @charge.js',
      ]}
    />
  )
}

function Edit({ of: { id, name, code, formula } }: { of: Partial<Reactor> }) {
  const { ask } = useLive()
  const [isOwn, setOwn] = useState(formula === undefined)
  return (
    <EditDialog
      title={id ? `Edit ${name}` : 'New reactor'}
      verb={id ? 'Save' : 'Create'}
      send={async (fields) => {
        if (id) return ask('reactor patch', { ...fields, id })
        return go(linkTo('reactors', (await ask('reactor create', fields)).id))
      }}
    >
      <Field label="Name" name="name" defaultValue={name} required grows />
      {formula && (
        <>
          <p>
            The code belongs to the formula {formula.name}, which other reactors may use too. Edit the formula
            in a terminal: <code>coffer formula get {formula.id} &gt; formula.json</code>, then{' '}
            <code>coffer formula update {formula.id} --file formula.json</code>
          </p>
          <Check
            label={`Detach from ${formula.name}: give ${name} its own code`}
            isOn={isOwn}
            turn={setOwn}
          />
          <p role="status">
            {isOwn &&
              `After Save, ${name} no longer uses the formula: changes of the formula have no effect on ${name}, and parameters are no longer checked.`}
          </p>
        </>
      )}
      {isOwn && <TextArea label="Code" name="code" rows={16} text={code ?? formula?.code ?? SAMPLE} />}
    </EditDialog>
  )
}

function ReactorDetail({ of: reactor }: { of: Reactor }) {
  const { id, name, code, formula, application, configuration, runtime } = reactor
  const { result, error } = useAsked('reactor scrubbed-logs', { id, number: LOOKED_AT })
  const last = result?.at(-1)
  const { ask } = useLive()
  const show = useDialog()
  const [isLater, setLater] = useState(false)
  const fields =
    formula?.request_parameters.map((each) => [each.name, `a ${each.type}`]) ??
    argNames(code ?? formula?.code ?? '').map((each) => [each, `<${each}>`])
  const body = JSON.stringify({ args: Object.fromEntries(fields) }, undefined, 2)
  const path = `/reactors/${id}/react${isLater ? '-async' : ''}`
  const leave = () =>
    show(
      <Confirm
        title={`Delete ${name}?`}
        text="Requests that call this reactor will be refused. Its runs are deleted too."
        verb="Delete"
        act={() => ask('reactor delete', { id }).then(() => go(linkTo('reactors')))}
      />,
    )
  const head = (
    <>
      <Badge>{formula ? 'formula' : 'code'}</Badge>
      <span class="dim mono">{id}</span>
      <Button class="push" text="Edit" act={() => show(<Edit of={reactor} />)} />
      <Button class="danger" text="Delete …" act={leave} />
    </>
  )
  const settings = {
    Application: application && <a href={linkTo('applications', application.id)}>{application.name}</a>,
    Configuration: Object.keys(configuration).join(', ') || 'none',
    'Time limit': runtime?.timeout && `${runtime.timeout} s`,
  }
  return (
    <Detail title={name} head={head} kind="doc">
      <div class="stack">
        <CodeOf reactor={reactor} line={last && last.outcome !== 'done' ? lineOf(last) : undefined} />
        <Runs runs={result} error={error} name={name} />
      </div>
      <div class="card stack">
        <h3 class="title">Run it</h3>
        <Composer key={path} draft={{ method: 'POST', path, body }} verb="Run" />
        <p class="dim small">
          <code>{'{{ card-1 }}'}</code> stands for the data of the token. The data goes to the code, not to
          this page.
        </p>
        <Check label="Run in background (react-async)" isOn={isLater} turn={setLater} />
        <hr />
        <h3>Settings</h3>
        <Facts of={settings} />
      </div>
    </Detail>
  )
}

/** The line of the code, from 1, at which a run failed. */
const lineOf = ({ stack }: Run) => Number(/:(\d+)/.exec(stack ?? '')?.[1]) || undefined

export const Outcome = ({ of: { outcome, status } }: { of: Pick<Run, 'outcome' | 'status'> }) => (
  <Badge kind={outcome === 'done' ? 'good' : 'bad'}>
    {outcome.replaceAll('_', ' ')} {status}
  </Badge>
)

/** Output that may contain data is not shown. */
function Printed({ of: run, name }: { of: Run; name: string }) {
  const lines = run.console.map(({ level, text }) => `${level}: ${text}`)
  const thrown = Object.values(run.errors ?? {}).flat()
  const line = lineOf(run)
  const text = [...lines, run.detail, ...thrown].filter(Boolean).join('\n')
  return (
    <>
      {run.outcome !== 'done' && (
        <Note title={`Failed${line === undefined ? '' : ` at line ${line}`}`}>
          {thrown.join(', ') || run.detail}
        </Note>
      )}
      <Code label={`Printed at ${run.created_at.slice(11, 23)} UTC`} text={text || 'Nothing.'} />
      <p class="dim small">
        Output that may contain data is not shown. Show all output:{' '}
        <code>coffer reactor logs {name} -n 1</code>
      </p>
    </>
  )
}

/** `isLater`: the request was answered before the run ended. */
export function RunOfRequest({ id, traceId, isLater }: { id: string; traceId: string; isLater: boolean }) {
  const reactor = useAsked('reactor list', { id: [id], size: 1 }).result?.data[0]
  const runs = useAsked('reactor scrubbed-logs', { id, number: KEPT }).result
  const run = runs?.find(({ trace_id }) => trace_id === traceId)
  if (run === undefined && isLater && runs)
    return <p role="status">The run in the background has not ended yet, or is no longer stored.</p>
  if (run === undefined || reactor === undefined) return null
  return (
    <>
      <h3>
        The run of <a href={linkTo('reactors', id)}>{reactor.name}</a> <Outcome of={run} />
      </h3>
      {run.outcome !== 'done' && <CodeOf reactor={reactor} line={lineOf(run)} />}
      <Printed of={run} name={reactor.name} />
    </>
  )
}

function CodeOf({ reactor: { code, formula }, line }: { reactor: Reactor; line?: number | undefined }) {
  const label = formula ? `Code of the formula ${formula.name}` : 'Code'
  return <Code label={label} text={code ?? formula?.code ?? ''} line={line} isCopied />
}

function Runs({ runs, error, name }: { runs: Run[] | undefined; error: string | undefined; name: string }) {
  const [chosen, choose] = useState<string>()
  if (runs?.length === 0)
    return <Empty title="It has not run yet">Run it from here, or call it from your test.</Empty>
  const newest = (runs ?? []).toReversed()
  const shown = newest.find(({ id }) => id === chosen) ?? newest[0]
  return (
    <>
      <h3>Last runs</h3>
      <Failure text={error} />
      {shown && <Printed of={shown} name={name} />}
      <Table
        rows={newest}
        columns={[
          ['Time UTC', '', ({ created_at }) => <code>{formatTime(created_at)}</code>],
          ['Ended', '', (run) => <Outcome of={run} />],
          ['Request', '', ({ trace_id }) => <RequestLink of={trace_id} />],
          ['ms', 'number', ({ duration_ms }) => duration_ms],
          ['MiB', 'number', ({ memory_mib }) => memory_mib],
        ]}
        actions={({ id }) => [['Show', ` the run ${id.slice(0, 8)}`, () => choose(id)]]}
      />
    </>
  )
}
