import { useState } from 'preact/hooks'
import type { ResultOf } from '../operations/all.js'
import { useAsked, useLive } from './api.js'
import { Button, Check, EditDialog, Failure, Field, TextArea, useDialog } from './forms.js'
import { Badge, Empty, Facts, Table } from './parts.js'
import { linkTo } from './route.js'
import { Detail, Item, ItemScreen } from './screen.js'
import { Composer } from './send.js'
import { Code, formatTime, RequestLink } from './text.js'

type Reactor = ResultOf<'reactor list'>['data'][number]
type Run = ResultOf<'reactor logs'>[number]

const SAMPLE = 'module.exports = async ({ args }) => {\n  return { raw: { hello: args.name } }\n}\n'

export function Reactors() {
  const show = useDialog()
  return (
    <ItemScreen
      thing="reactor"
      find="Name"
      asked={useAsked('reactor list', { size: 100 })}
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
  return (
    <EditDialog
      title={id ? `Code of ${name}` : 'New reactor'}
      verb={id ? 'Save' : 'Create'}
      send={(fields) => (id ? ask('reactor patch', { ...fields, id }) : ask('reactor create', fields))}
    >
      <Field label="Name" name="name" defaultValue={name} required grows />
      <TextArea label="Code" name="code" rows={16} text={code ?? formula?.code ?? SAMPLE} />
    </EditDialog>
  )
}

function ReactorDetail({ of: reactor }: { of: Reactor }) {
  const { id, name, code, formula, application, configuration, runtime } = reactor
  const show = useDialog()
  const [isLater, setLater] = useState(false)
  const fields = formula?.request_parameters.map((each) => [each.name, `a ${each.type}`]) ?? [['name', 'Ada']]
  const body = JSON.stringify({ args: Object.fromEntries(fields) }, undefined, 2)
  const path = `/reactors/${id}/react${isLater ? '-async' : ''}`
  const label = formula ? `Code of the formula ${formula.name}` : 'Code'
  const head = (
    <>
      <Badge>{formula ? 'formula' : 'code'}</Badge>
      <span class="dim mono">{id}</span>
      <Button class="push" text="Edit" act={() => show(<Edit of={reactor} />)} />
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
        <Code label={label} text={code ?? formula?.code ?? ''} isCopied />
        <Runs of={reactor} />
      </div>
      <div class="card stack">
        <h2>Run it</h2>
        <Composer key={path} draft={{ method: 'POST', path, body }} verb="Run" />
        <p class="dim small">
          <code>{'{{ card-1 }}'}</code> stands for the data of the token. It goes to the code, not to this
          page.
        </p>
        <Check label="Later (react-async)" isOn={isLater} turn={setLater} />
        <hr />
        <h3>Settings</h3>
        <Facts of={settings} />
      </div>
    </Detail>
  )
}

function Runs({ of: { id, name } }: { of: Reactor }) {
  const { read } = useLive()
  const [printed, setPrinted] = useState<Run>()
  const { result, error } = useAsked('reactor logs', { id })
  const show = async () => setPrinted((await read('reactor scrubbed-logs', { id, number: 1 }))[0])
  if (result?.length === 0)
    return <Empty title="It has not run yet">Run it from here, or call it from your test.</Empty>
  const lines = printed?.console.map(({ level, text }) => `${level}: ${text}`) ?? []
  const thrown = Object.values(printed?.errors ?? {}).flat()
  const text = [...lines, printed?.detail, ...thrown, printed?.stack].filter(Boolean).join('\n') || 'Nothing.'
  const outcome = ({ outcome, status }: Run) => (
    <Badge kind={outcome === 'done' ? 'good' : 'bad'}>
      {outcome} {status}
    </Badge>
  )
  return (
    <>
      <h3>Last runs</h3>
      <Failure text={error} />
      <Table
        rows={(result ?? []).toReversed()}
        columns={[
          ['Time UTC', '', ({ created_at }) => <code>{formatTime(created_at)}</code>],
          ['Ended', '', outcome],
          ['Request', '', ({ trace_id }) => <RequestLink of={trace_id} />],
          ['ms', 'number', ({ duration_ms }) => duration_ms],
          ['MiB', 'number', ({ memory_mib }) => memory_mib],
        ]}
      />
      <div class="row">
        <Button text="Show what the last run printed" act={show} />
        <span class="dim small">
          Output that may contain data is not shown. Show all output:{' '}
          <code>coffer reactor logs {name} -n 1</code>
        </span>
      </div>
      {printed && <Code label={`Printed at ${printed.created_at.slice(11, 23)} UTC`} text={text} />}
    </>
  )
}
