import { useState } from 'preact/hooks'
import type { Access } from '../control/page-work.js'
import { useAsked, useLive, useRoute } from './api.js'
import { type Application, describeAccess, Held } from './decision.js'
import { editable } from './edit.js'
import type { Fields } from './forms.js'
import { Button, Choose, Confirm, Field, Form, Submit, useDialog } from './forms.js'
import { Badge, Facts, Method, Note, Seeing, Status, Table } from './parts.js'
import { linkTo, titleOf } from './route.js'
import { EditApplication } from './rules.js'
import { Detail, Item, ItemScreen, useNamed, usePaging } from './screen.js'
import { countOf, RequestLink, Time } from './text.js'

const SHOWN_REQUESTS = 10

const rules = [
  { priority: 1, container: '/', transform: 'mask', permissions: ['token:create', 'token:read'] },
]
const SAMPLE = { name: 'backend', permissions: [], rules }

export function Applications() {
  const { requests = [] } = useLive()
  const show = useDialog()
  const requestsOf = (id: string) => requests.filter(({ application_id }) => application_id === id).length
  return (
    <ItemScreen
      thing="application"
      find="Name, type"
      asked={useAsked('app list', usePaging())}
      named={useNamed<Application>('app list')}
      actions={[
        <a key="access" class="button" href={linkTo('access')}>
          Who sees what
        </a>,
        <Button
          key="new"
          class="primary"
          text="New application"
          act={() => show(<EditApplication type="private" initial={SAMPLE} />)}
        />,
      ]}
      textOf={({ name, type }) => `${name} ${type}`}
      item={({ id, name, type }) => (
        <Item
          name={name}
          tag={<Badge kind="push">{type}</Badge>}
          about={countOf(requestsOf(id), 'request')}
        />
      )}
      detail={ApplicationDetail}
      empty={[
        'No application yet',
        'An application has a key, and rules for what the key may do.',
        'coffer serve --starter-apps',
      ]}
    />
  )
}

function ApplicationDetail({ of: application }: { of: Application }) {
  const show = useDialog()
  const { id, name, type } = application
  const { rule, container } = useRoute().filters
  const decider = deciderOf(rule, id)
  const target = (decider !== undefined && container) || '/pci/high/'
  const edit = () => show(<EditApplication id={id} type={type} initial={editable(application)} />)
  const facts = {
    Id: <code>{id}</code>,
    Created: <Time of={application.created_at} by={application.created_by} />,
    Expires: <Time of={application.expires_at} />,
  }
  return (
    <Detail
      title={name}
      head={[
        <Badge key="type">{type}</Badge>,
        <Button key="edit" class="push" text="Edit rules" act={edit} />,
      ]}
    >
      <div class="columns">
        <div class="stack">
          <h3>What it may do</h3>
          <Held of={application} decider={decider} />
          {decider !== undefined && (
            <p class="small">
              Rule {decider} decides <code>{target}</code> in {titleOf('access')}.
            </p>
          )}
        </div>
        <DryRun key={`${id} ${target}`} id={id} target={target} />
      </div>
      <div class="columns">
        <div class="stack">
          <h3>About</h3>
          <Facts of={facts} />
        </div>
        <Keys application={application} />
      </div>
      <LastRequests id={id} name={name} />
    </Detail>
  )
}

/** Returns the priority of the rule in the link, if the rule belongs to this application. */
function deciderOf(named: string | undefined, id: string): number | undefined {
  return named?.startsWith(`${id}.`) ? Number(named.slice(id.length + 1)) : undefined
}

function DryRun({ id, target }: { id: string; target: string }) {
  const { dryRun, session } = useLive()
  const [found, setFound] = useState<Access>()
  const can = found?.transform !== undefined
  const ask = async (fields: Fields) => {
    setFound(undefined)
    setFound((await dryRun({ ...fields, application: id }))[0])
  }
  return (
    <Form class="card stack" send={ask}>
      <h3 class="title">Would it be allowed?</h3>
      <div class="form">
        <Choose label="Permission" name="permission" isShown of={session.permissions} value="token:read" />
        <Field label="Container or token" name="target" defaultValue={target} required grows />
        <Submit text="Ask" />
      </div>
      <div role="status">
        {found && (
          <Note kind={can ? 'good' : 'bad'} title={can ? 'Yes' : 'No'}>
            {can && <Seeing transform={found.transform} />} Because: {describeAccess(found)}.
          </Note>
        )}
      </div>
    </Form>
  )
}

function Keys({ application: { id, name, keys } }: { application: Application }) {
  const { ask } = useLive()
  const show = useDialog()
  const leave = (key: string) =>
    show(
      <Confirm
        title="Delete the key?"
        text={`Requests with this key of ${name} will be refused.`}
        verb="Delete"
        act={() => ask('app key delete', { application_id: id, id: key })}
      />,
    )
  return (
    <div class="stack">
      <h3>Keys</h3>
      <Table
        rows={keys}
        columns={[
          ['Key id', '', (key) => <code>{key.id.slice(0, 8)}…</code>],
          ['Created', '', (key) => <Time of={key.created_at} />],
        ]}
        actions={(key) => [
          ['Delete …', ` key ${key.id.slice(0, 8)} of ${name}`, () => leave(key.id), 'danger'],
        ]}
      />
      <p class="dim small">
        This page never shows keys. Create a key in a terminal:{' '}
        <code>coffer app key create {JSON.stringify(name)}</code>
      </p>
    </div>
  )
}

function LastRequests({ id, name }: { id: string; name: string }) {
  const own = (useLive().requests ?? []).filter((each) => each.application_id === id)
  return (
    <div class="stack">
      <h3>Last requests</h3>
      <Table
        rows={own.slice(0, SHOWN_REQUESTS)}
        columns={[
          ['Time UTC', '', ({ at }) => <code>{at.slice(11, 23)}</code>],
          ['Method', '', ({ method }) => <Method name={method} />],
          ['Path', '', ({ path, trace_id }) => <RequestLink of={trace_id} text={path} />],
          ['Status', 'number', ({ status }) => <Status status={status} />],
        ]}
      />
      <p>
        <a href={linkTo('requests', undefined, { application: name })}>{countOf(own.length, 'request')}</a>,{' '}
        {own.filter(({ status }) => status === 0 || status >= 400).length} failed
      </p>
    </div>
  )
}
