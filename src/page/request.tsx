/** One request: why, which rule decided, what was sent and answered, as code. */
import { useState } from 'preact/hooks'
import type { Problem } from '../errors.js'
import { type Seen, useAction, useEvent, useLive } from './api.js'
import { Decisions, Why } from './decision.js'
import { Button, Failure } from './forms.js'
import {
  ApplicationLink,
  CodeTabs,
  Copy,
  Detail,
  Facts,
  formatJson,
  Json,
  Method,
  Status,
  Tabs,
  Time,
} from './parts.js'
import { useOperation } from './reference.js'
import { go, linkTo, type Route } from './route.js'
import { refill } from './samples.js'
import { ComposeDialog, type Draft, NOBODY } from './send.js'

export const EDIT = 'coffer-edit'

export const isFailed = ({ status }: Seen) => status === 0 || status >= 400
export const queryOf = ({ query = [] }: Seen) =>
  query.length === 0 ? '' : `?${query.map((name) => `${name}=…`).join('&')}`

export function Request({ request, id, route }: { request: Seen; id: string; route: Route }) {
  const { session, sendRequest } = useLive()
  const [draft, setDraft] = useState<Draft>()
  const { act, error } = useAction()
  const { method, path, status, operation, application_id, decisions = [], answer, fault } = request
  const { example, type = 'application/json' } = useOperation(operation) ?? {}
  const body = request.request === undefined ? undefined : formatJson(refill(request.request, example))
  const target = path + queryOf(request)
  const problem = (isFailed(request) && answer ? answer : {}) as Partial<Problem>
  const send = () =>
    act(async () => {
      const { trace_id } = await sendRequest({ method, target: path, application: application_id })
      go(linkTo('requests', trace_id.slice(0, 8)))
    })
  const edit = () => setDraft({ method, path, type, body, application: application_id ?? NOBODY })
  useEvent(EDIT, edit)
  const head = [
    <Method key="method" name={method} />,
    <h2 key="path" class="mono">
      {target}
    </h2>,
    <Status key="status" status={status} />,
  ]
  const none = fault ? 'The fault answered before any rule was asked.' : 'No rule was asked.'
  const tabs = {
    Overview: () => [
      <Why key="why" request={request} problem={problem} />,
      <About key="about" request={request} />,
      <Kept key="answer" label="Answer" value={answer} />,
    ],
    Decision: () => <Decisions decisions={decisions} id={application_id} none={none} />,
    Request: () => [
      <Facts
        key="about"
        of={{ 'API key': `in ${session.header}, not kept`, Query: request.query?.join(', ') }}
      />,
      <Kept key="body" label="Body" value={request.request} />,
    ],
    Response: () => [
      <Facts
        key="about"
        of={{ Status: <Status status={status} />, 'Trace id': <code>{request.trace_id}</code> }}
      />,
      <Kept key="answer" label="Answer" value={answer} />,
    ],
    Code: () => <CodeTabs call={{ method, path: target, header: session.header, type, body }} />,
  }
  return (
    <Detail back={linkTo('requests', undefined, route.filters)} head={head}>
      <div class="row">
        {body === undefined && target === path && <Button text="Send again" act={send} />}
        <Button text="Edit and send" act={edit} />
        <Copy label="Copy link" text={`${location.origin}/${linkTo('requests', id)}`} />
      </div>
      <Failure text={error} />
      <Tabs label="About this request" tabs={tabs} />
      {draft && <ComposeDialog draft={draft} close={() => setDraft(undefined)} />}
    </Detail>
  )
}

function About({ request }: { request: Seen }) {
  const { operation, destination, destination_status = '' } = request
  const described = operation && <a href={linkTo('reference', operation.replaceAll(' ', '-'))}>{operation}</a>
  return (
    <Facts
      of={{
        Application: <ApplicationLink id={request.application_id} />,
        Operation: described ?? 'none',
        Time: <Time of={request.at} />,
        Took: `${request.ms} ms`,
        'Trace id': <code>{request.trace_id}</code>,
        Destination: destination && `${destination} ${destination_status}`,
      }}
    />
  )
}

/** A body as it is kept. */
function Kept({ label, value }: { label: string; value: unknown }) {
  if (value === undefined) return <p class="dim">{label}: none.</p>
  return <Json label={`${label}, without data`} value={value} isCopied />
}
