import { useState } from 'preact/hooks'
import type { ResultOf } from '../operations/all.js'
import { useAction, useAsked, useLive } from './api.js'
import { Button, Check, EditDialog, Failure, Field, type Fields, TextArea } from './forms.js'
import { Badge, Code, Detail, Empty, Facts, Table, Terminal } from './parts.js'
import { linkTo, type Route } from './route.js'
import { ItemScreen } from './screen.js'
import { Composer } from './send.js'

type Reactor = ResultOf<'reactor list'>['data'][number]
type Run = ResultOf<'reactor logs'>[number]

const SAMPLE = 'module.exports = async ({ args }) => {\n  return { raw: { hello: args.name } }\n}\n'

export function Reactors({ route }: { route: Route }) {
  const { ask } = useLive()
  const [edited, setEdited] = useState<Partial<Reactor>>()
  const { result, error } = useAsked('reactor list', { size: 100 })
  const { id, name, code, formula } = edited ?? {}
  const save = (fields: Fields) =>
    id ? ask('reactor patch', { ...fields, id }) : ask('reactor create', fields)
  return (
    <ItemScreen
      title="Reactors"
      screen="reactors"
      thing="reactor"
      route={route}
      placeholder="Name"
      error={error}
      actions={<Button class="primary" text="New reactor" act={() => setEdited({})} />}
      all={result?.data}
      textOf={(each) => each.name}
      item={(each) => [
        <b key="name">{each.name}</b>,
        <span key="kind" class="dim">
          {each.formula ? `formula ${each.formula.name}` : 'code'}
        </span>,
      ]}
      detail={(each) => <ReactorDetail key={each.id} reactor={each} edit={() => setEdited(each)} />}
      empty={
        <Empty title="No reactor yet">
          <p>A reactor is code that runs on the data of tokens, in a sandbox.</p>
          <Terminal text="coffer reactor create --name charge-card --code @charge.js" />
        </Empty>
      }
    >
      {edited && (
        <EditDialog
          title={id ? `Code of ${name}` : 'New reactor'}
          verb={id ? 'Save' : 'Create'}
          send={save}
          close={() => setEdited(undefined)}
        >
          <Field label="Name" name="name" defaultValue={name} required grows />
          <TextArea label="Code" name="code" rows={16} text={code ?? formula?.code ?? SAMPLE} />
        </EditDialog>
      )}
    </ItemScreen>
  )
}

function ReactorDetail({ reactor, edit }: { reactor: Reactor; edit(): void }) {
  const { id, name, code, formula, application, configuration, runtime } = reactor
  const [isLater, setLater] = useState(false)
  const fields = formula?.request_parameters.map((each) => [each.name, `a ${each.type}`]) ?? [['name', 'Ada']]
  const body = JSON.stringify({ args: Object.fromEntries(fields) }, undefined, 2)
  const path = `/reactors/${id}/react${isLater ? '-async' : ''}`
  const head = [
    <h2 key="name">{name}</h2>,
    <Badge key="kind">{formula ? 'formula' : 'code'}</Badge>,
    <span key="id" class="dim mono">
      {id}
    </span>,
    <Button key="edit" class="push" text="Edit" act={edit} />,
  ]
  return (
    <Detail back="#/reactors" head={head} kind="doc">
      <div class="stack">
        <Code
          label={formula ? `Code of the formula ${formula.name}` : 'Code'}
          text={code ?? formula?.code ?? ''}
          isCopied
        />
        <Runs id={id} />
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
        <Facts
          of={{
            Application: application && (
              <a href={linkTo('applications', application.id)}>{application.name}</a>
            ),
            Configuration: Object.keys(configuration).join(', ') || 'none',
            'Time limit': runtime?.timeout && `${runtime.timeout} s`,
          }}
        />
      </div>
    </Detail>
  )
}

function Runs({ id }: { id: string }) {
  const { ask } = useLive()
  const [printed, setPrinted] = useState<Run>()
  const { act, error } = useAction()
  const { result, error: missing } = useAsked('reactor logs', { id })
  const show = () =>
    act(async () => setPrinted((await ask('reactor logs', { id, number: 1, shows_output: true }))[0]))
  if (result?.length === 0)
    return <Empty title="It has not run yet">Run it from here, or call it from your test.</Empty>
  const rows = (result ?? []).toReversed().map((run) => [
    <code key="at">{run.created_at.slice(0, 19).replace('T', ' ')}</code>,
    <Badge key="ended" kind={run.outcome === 'done' ? 'good' : 'bad'}>
      {run.outcome} {run.status}
    </Badge>,
    <a key="request" class="mono" href={linkTo('requests', run.trace_id.slice(0, 8))}>
      {run.trace_id.slice(0, 8)}
    </a>,
    run.duration_ms,
    run.memory_mib,
  ])
  const lines = printed?.console.map(({ level, text }) => `${level}: ${text}`) ?? []
  const thrown = Object.values(printed?.errors ?? {}).flat()
  const text = [...lines, printed?.detail, ...thrown, printed?.stack].filter(Boolean).join('\n') || 'Nothing.'
  return (
    <>
      <h3>Last runs</h3>
      <Failure text={error ?? missing} />
      <Table head={['Time UTC', 'Ended', 'Request', 'ms', 'MiB']} rows={rows} right={3} />
      <div class="row">
        <Button text="Show what the last run printed" act={show} />
        <span class="dim small">Code may print data in plaintext.</span>
      </div>
      {printed && <Code label={`Printed at ${printed.created_at.slice(11, 23)} UTC`} text={text} />}
    </>
  )
}
