import type { Judged } from '../control/page-management.js'
import type { ResultOf } from '../operations/all.js'
import { useAsked, useLive } from './api.js'
import { Button, Confirm, Copy, EditDialog, useDialog } from './forms.js'
import { Badge, Facts, Note } from './parts.js'
import { go, linkTo } from './route.js'
import { type Hint, useSchemaFields } from './schema-form.js'
import { Detail, Item, ItemScreen, useNamed, usePaging } from './screen.js'
import { ApplicationLink, Code, formatJson, Refusal, Terminal, Time } from './text.js'

export type Proxy = Judged<Omit<ResultOf<'proxy create'>, 'key'>>
type Transform = Proxy['request_transforms'][number]

const NAMES = [
  ...['name', 'destination_url', 'require_auth', 'disable_detokenization', 'application', 'configuration'],
  ...['request_transforms', 'response_transforms', 'request_reactor_id', 'response_reactor_id'],
]
const NEW = { require_auth: true }

export function Proxies() {
  const show = useDialog()
  return (
    <ItemScreen
      thing="proxy"
      find="Name, address"
      asked={useAsked('proxy list', usePaging())}
      named={useNamed<Proxy>('proxy list')}
      actions={<Button class="primary" text="New proxy" act={() => show(<Edit of={NEW} />)} />}
      textOf={({ name, destination_url }) => `${name} ${destination_url}`}
      item={(proxy) => <Item name={proxy.name} tag={<State of={proxy} />} about={proxy.destination_url} />}
      detail={ProxyDetail}
      empty={[
        'No proxy yet',
        'A proxy puts the data of tokens into a request, and sends the request to another server.',
        'coffer proxy create --name billing --destination-url https://api.example.com/v1',
      ]}
    />
  )
}

function State({ of: { state, refusal } }: { of: Proxy }) {
  const shown = state === 'active' && refusal !== undefined ? 'blocked' : state
  if (shown === 'active') return null
  return <Badge kind={['failed', 'blocked'].includes(shown) ? 'push bad' : 'push warn'}>{shown}</Badge>
}

/** True if the server has replaced values of the transforms by descriptions. */
const isHidden = (transforms: readonly Transform[] = []) =>
  transforms.some(({ options }) => options?.value !== undefined || options?.token !== undefined)

/** Undefined if there is no transform, or if descriptions replace values. The form must not store descriptions. */
const shownOf = (transforms: readonly Transform[] = []) =>
  transforms.length === 0 || isHidden(transforms) ? undefined : transforms

function Edit({ of: proxy }: { of: Partial<Proxy> }) {
  const { ask, facts } = useLive()
  const reactors = useAsked('reactor list', { size: 100 }).result?.data ?? []
  const { id, name, application_id } = proxy
  const isPatch = id !== undefined
  const applications = (facts?.applications ?? []).map((each) => [each.id, `${each.name} (${each.type})`])
  const ofReactor = {
    choices: Object.fromEntries(reactors.map((each) => [each.id, each.name])),
    help: 'The reactor is used instead of transforms.',
  }
  const lines = 'Write one NAME=value on each line.'
  const hints: Record<string, Hint> = {
    name: { help: '' },
    application: {
      choices: Object.fromEntries(applications),
      help: 'The code of the proxy acts as this application.',
    },
    configuration: {
      isKept: Object.keys(proxy.configuration ?? {}).length > 0,
      help: isPatch ? `${lines} These lines replace all stored parameters.` : lines,
    },
    request_transforms: { isKept: isHidden(proxy.request_transforms), rows: 8 },
    response_transforms: { isKept: isHidden(proxy.response_transforms), rows: 8 },
    request_reactor_id: { label: 'Reactor for requests', ...ofReactor },
    response_reactor_id: { label: 'Reactor for answers', ...ofReactor },
    require_auth: {
      label: 'Calls need an API key',
      help: 'If this is off, calls without a key act as the application of the proxy.',
    },
    disable_detokenization: { label: 'Pass expressions on unchanged', help: '' },
  }
  const of = {
    ...proxy,
    application: application_id && { id: application_id },
    request_transforms: shownOf(proxy.request_transforms),
    response_transforms: shownOf(proxy.response_transforms),
  }
  const { read, draw } = useSchemaFields({
    operation: isPatch ? 'proxy patch' : 'proxy create',
    ...{ names: NAMES, of, hints, isPatch },
  })
  const save = async (_: unknown, data: FormData) => {
    if (isPatch) return ask('proxy patch', { ...read(data), id })
    return go(linkTo('proxies', (await ask('proxy create', read(data))).id))
  }
  return (
    <EditDialog title={isPatch ? `Edit ${name}` : 'New proxy'} verb={isPatch ? 'Save' : 'Create'} send={save}>
      {draw()}
    </EditDialog>
  )
}

function ProxyDetail({ of: proxy }: { of: Proxy }) {
  const { ask } = useLive()
  const show = useDialog()
  const { id, name, destination_url, application_id, configuration } = proxy
  const leave = () =>
    show(
      <Confirm
        title={`Delete ${name}?`}
        text={`Its configuration and its key are deleted. Calls through ${name} will be refused.`}
        verb="Delete"
        act={() => ask('proxy delete', { id }).then(() => go(linkTo('proxies')))}
      />,
    )
  const head = (
    <>
      <State of={proxy} />
      <Button class="push" text="Edit" act={() => show(<Edit of={proxy} />)} />
      <Button class="danger" text="Delete …" act={leave} />
    </>
  )
  const facts = {
    Id: <code>{id}</code>,
    Destination: destination_url,
    'API key': proxy.require_auth ? 'required' : 'not required',
    Expressions: proxy.disable_detokenization ? 'passed on unchanged' : 'replaced by the data of tokens',
    Application: application_id && <ApplicationLink id={application_id} />,
    Configuration: Object.keys(configuration).join(', ') || 'none',
    Created: <Time of={proxy.created_at} by={proxy.created_by} />,
    Modified: proxy.modified_at && <Time of={proxy.modified_at} by={proxy.modified_by} />,
  }
  return (
    <Detail title={name} head={head}>
      <div class="row">
        <Copy label="Copy id" text={id} />
      </div>
      {proxy.refusal && (
        <Note kind="warn" title="The server is not allowed to call this address">
          <Refusal text={proxy.refusal} />
        </Note>
      )}
      <Facts of={facts} />
      <Changes title="Requests" of={proxy.request_transforms} reactor={proxy.request_reactor_id} />
      <Changes title="Answers" of={proxy.response_transforms} reactor={proxy.response_reactor_id} />
      <h3>Key</h3>
      <p class="dim">
        A call names its proxy by a key. This page never shows keys, values of the configuration, or values
        that transforms add. Show them in a terminal:
      </p>
      <Terminal text={`coffer proxy get ${id}`} />
    </Detail>
  )
}

interface ChangesProps {
  title: string
  of: readonly Transform[]
  reactor: string | undefined
}

/** Lists the transforms in the order in which they are applied. */
function Changes({ title, of, reactor }: ChangesProps) {
  const named = useAsked('reactor list', { id: [reactor ?? '-'], size: 1 }).result?.data[0]
  return (
    <>
      <h3>{title}</h3>
      {reactor !== undefined && (
        <p>
          Changed by the reactor <a href={linkTo('reactors', reactor)}>{named?.name ?? reactor}</a>
        </p>
      )}
      {reactor === undefined && of.length === 0 && <p class="dim">Passed on as they are.</p>}
      {of.map((transform, at) => (
        <Code key={at} label={`${at + 1} · ${transform.type}`} text={describeTransform(transform)} />
      ))}
    </>
  )
}

const describeTransform = ({ type: _, code, ...rest }: Transform) => code ?? formatJson(rest)
