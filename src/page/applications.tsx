import { useState } from 'preact/hooks'
import type { Access } from '../framework/ports/page.js'
import { useAction, useAsked, useLive, useNameOf } from './api.js'
import { type Application, describeAccess, describePermissions, RuleText } from './decision.js'
import { Button, Choose, Confirm, EditDialog, Failure, Field, type Fields, Form, TextArea } from './forms.js'
import {
  Badge,
  Detail,
  Empty,
  Facts,
  formatJson,
  Method,
  Note,
  Seeing,
  Status,
  Table,
  Terminal,
  Time,
} from './parts.js'
import { linkTo, type Route } from './route.js'
import { ItemScreen } from './screen.js'

const SHOWN_REQUESTS = 10

const rules = [
  { priority: 1, container: '/', transform: 'mask', permissions: ['token:create', 'token:read'] },
]
const SAMPLE = { name: 'backend', type: 'private', permissions: [], rules }

export function Applications({ route }: { route: Route }) {
  const { requests = [], ask } = useLive()
  /** An application, or what a new one begins with. */
  const [edited, setEdited] = useState<Partial<Application>>()
  const { result, error } = useAsked('app list', { size: 100 })
  const start = (
    <Button class="primary" text="New application" act={() => setEdited(SAMPLE as Partial<Application>)} />
  )
  const id = edited?.id
  const { name, type, permissions, rules, expires_at } = edited ?? {}
  const grants = { name, ...(id === undefined && { type }), permissions, rules, expires_at }
  const save = ({ json = '' }: Fields) => {
    const input = JSON.parse(json) as object
    return id === undefined ? ask('app create', input) : ask('app update', { ...input, id })
  }
  return (
    <ItemScreen
      title="Applications"
      screen="applications"
      thing="application"
      route={route}
      placeholder="Name, type"
      error={error}
      actions={start}
      all={result?.data}
      textOf={(each) => `${each.name} ${each.type}`}
      item={(each) => (
        <>
          <span class="row">
            <b>{each.name}</b>
            <Badge kind="push">{each.type}</Badge>
          </span>
          <span class="dim">
            {requests.filter(({ application_id }) => application_id === each.id).length} requests
          </span>
        </>
      )}
      detail={(each) => <ApplicationDetail key={each.id} application={each} edit={() => setEdited(each)} />}
      empty={
        <Empty title="No application yet">
          <p>An application has a key, and rules for what the key may do.</p>
          <Terminal text="coffer serve --starter-apps" />
          {start}
        </Empty>
      }
    >
      {edited && (
        <EditDialog
          title={id ? `Rules of ${name}` : 'New application'}
          verb={id ? 'Save' : 'Create'}
          send={save}
          close={() => setEdited(undefined)}
        >
          <TextArea label="Grants (JSON)" name="json" rows={16} text={formatJson(grants)} />
          <p class="dim small">The rule with the lowest priority decides. A key is made in a terminal.</p>
        </EditDialog>
      )}
    </ItemScreen>
  )
}

function ApplicationDetail({ application, edit }: { application: Application; edit(): void }) {
  const nameOf = useNameOf()
  const { id, name, type, permissions = [], rules = [] } = application
  const head = [
    <h2 key="name">{name}</h2>,
    <Badge key="type">{type}</Badge>,
    <Button key="edit" class="push" text="Edit rules" act={edit} />,
  ]
  return (
    <Detail back="#/applications" head={head}>
      <div class="columns">
        <div class="stack">
          <h3>What it may do</h3>
          <ol class="rules">
            {rules.map((rule) => (
              <li key={rule.priority}>
                <b>Rule {rule.priority}</b> <RuleText rule={rule} /> Data is{' '}
                <Seeing transform={rule.transform} />
              </li>
            ))}
            <li class="dim">
              {rules.length > 0 && 'Else '}it {describePermissions(permissions)}.
            </li>
          </ol>
        </div>
        <DryRun id={id} />
      </div>
      <div class="columns">
        <div class="stack">
          <h3>About</h3>
          <Facts
            of={{
              Id: <code>{id}</code>,
              Created: [
                <Time key="at" of={application.created_at} />,
                ` by ${nameOf(application.created_by)}`,
              ],
              Expires: <Time of={application.expires_at} />,
            }}
          />
        </div>
        <Keys application={application} />
      </div>
      <LastRequests id={id} name={name} />
    </Detail>
  )
}

/** Tries the rules before a test does. */
function DryRun({ id }: { id: string }) {
  const { dryRun, session } = useLive()
  const [found, setFound] = useState<Access>()
  const { act, error } = useAction()
  const can = found?.transform !== undefined
  const names = Object.fromEntries(session.permissions.map((name) => [name, name]))
  const ask = (fields: Fields) => act(async () => setFound((await dryRun({ ...fields, application: id }))[0]))
  return (
    <Form class="card stack" send={ask}>
      <h2>Would it be allowed?</h2>
      <div class="form">
        <Choose label="Permission" name="permission" isShown of={names} value="token:read" />
        <Field label="Container or token" name="target" defaultValue="/pci/high/" required grows />
        <button type="submit">Ask</button>
      </div>
      <Failure text={error} />
      <div role="status">
        {found && error === undefined && (
          <Note kind={can ? 'good' : 'bad'} title={can ? 'Yes' : 'No'}>
            <p>
              {can && <Seeing transform={found.transform} />} Because: {describeAccess(found)}.
            </p>
          </Note>
        )}
      </div>
    </Form>
  )
}

function Keys({ application: { id, name, keys } }: { application: Application }) {
  const { ask } = useLive()
  const [leaving, setLeaving] = useState<string>()
  const rows = keys.map((key) => {
    const short = key.id.slice(0, 8)
    const label = `Delete key ${short} of ${name}`
    const remove = <Button class="danger" text="Delete …" aria-label={label} act={() => setLeaving(key.id)} />
    return [<code key="id">{short}…</code>, <Time key="at" of={key.created_at} />, remove]
  })
  return (
    <div class="stack">
      <h3>Keys</h3>
      {keys.length > 0 && <Table head={['Key id', 'Created', 'Actions']} rows={rows} right={2} />}
      <p class="dim small">
        Keys never come to this page. Make one in a terminal:{' '}
        <code>coffer app key create {JSON.stringify(name)}</code>
      </p>
      {leaving && (
        <Confirm
          title="Delete the key?"
          text={`Requests with this key of ${name} are refused from then on.`}
          verb="Delete"
          act={() => ask('app key delete', { application_id: id, id: leaving })}
          close={() => setLeaving(undefined)}
        />
      )}
    </div>
  )
}

function LastRequests({ id, name }: { id: string; name: string }) {
  const own = (useLive().requests ?? []).filter((each) => each.application_id === id)
  const rows = own.slice(0, SHOWN_REQUESTS).map(({ at, method, path, status, trace_id }) => [
    <code key="at">{at.slice(11, 23)}</code>,
    <Method key="method" name={method} />,
    <a key="path" class="mono" href={linkTo('requests', trace_id.slice(0, 8))}>
      {path}
    </a>,
    <Status key="status" status={status} />,
  ])
  return (
    <div class="stack">
      <h3>Last requests</h3>
      {rows.length > 0 && <Table head={['Time UTC', 'Method', 'Path', 'Status']} rows={rows} right={3} />}
      <p>
        <a href={linkTo('requests', undefined, { application: name })}>All {own.length} requests</a>,{' '}
        {own.filter(({ status }) => status >= 400).length} refused
      </p>
    </div>
  )
}
