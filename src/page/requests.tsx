import { useEffect, useState } from 'preact/hooks'
import type { Problem } from '../errors.js'
import type { ExplainedDecision } from '../framework/caller/decisions.js'
import type { RequestRecord } from '../framework/ports/control.js'
import { useAsked, useLive } from './api.js'
import { Button, Code, curl, Details, Fault, Field, formatJson, Heading, Status, time } from './parts.js'

const POLL_MS = 1000
const SHOWN_AT_ONCE = 100

type Seen = RequestRecord & { number: number }

/** Newest first; undefined until they are known. */
function useRequests(): { list?: Seen[]; error?: string } {
  const live = useLive()
  const [state, setState] = useState<{ list?: Seen[]; error?: string }>({})
  useEffect(() => {
    let count = 0
    let isOver = false
    setState({})
    const look = async () => {
      if (document.hidden) return
      try {
        const news = await live.requestsAfter(count)
        if (isOver) return
        const start = news.count - news.records.length
        const made = news.records.map((record, at) => ({ ...record, number: start + at })).reverse()
        // The server was restarted, or its requests were cleared.
        const isNew = news.count < count
        count = news.count
        setState(({ list: old = [] }) => {
          const kept = isNew ? [] : old.filter(({ number }) => number >= news.first)
          return { list: made.length === 0 && kept.length === old.length ? old : [...made, ...kept] }
        })
      } catch (caught) {
        if (!isOver) setState(({ list = [] }) => ({ list, error: (caught as Error).message }))
      }
    }
    void look()
    const timer = setInterval(look, POLL_MS)
    return () => {
      isOver = true
      clearInterval(timer)
    }
  }, [live])
  return state
}

export function Requests() {
  const live = useLive()
  const { list, error } = useRequests()
  const [text, setText] = useState('')
  const [isOnlyFailed, setOnlyFailed] = useState(false)
  const [most, setMost] = useState(SHOWN_AT_ONCE)
  const { result: apps } = useAsked('app list', { size: 100 })
  const nameOf = (id = '') => apps?.data.find((app) => app.id === id)?.name ?? id.slice(0, 8)
  const fits = (request: Seen) => {
    const { method, path, operation, status, trace_id, application_id } = request
    const about = [method, path, operation, status, trace_id, nameOf(application_id)].join(' ')
    return (!isOnlyFailed || isFailed(request)) && about.toLowerCase().includes(text.toLowerCase())
  }
  const found = list?.filter(fits) ?? []
  const none = list?.length === 0 ? 'No request yet. New ones appear here.' : 'None of the requests fits.'
  return (
    <>
      <Heading text="Requests">
        <Field label="Find" type="search" onInput={(event) => setText(event.currentTarget.value)} />
        <Field
          label="only failed"
          type="checkbox"
          onChange={(event) => setOnlyFailed(event.currentTarget.checked)}
        />
        {live.session.controls.faults && (
          <Button text="Clear" act={() => live.ask('control request clear')} />
        )}
      </Heading>
      {error !== undefined && <Fault text={error} />}
      {found.length === 0 && <p class="dim">{list === undefined ? 'Loading …' : none}</p>}
      {found.slice(0, most).map((request) => (
        <Details
          key={request.number}
          title={[
            <b key="method">{request.method}</b>,
            <code key="path"> {request.path} </code>,
            <Status key="status" isFault={isFailed(request)} text={request.status || 'no answer'} />,
          ]}
          about={[
            time(request.at),
            nameOf(request.application_id) || 'nobody',
            `${request.ms} ms`,
            ...(request.fault === undefined ? [] : [`fault: ${request.fault}`]),
          ].join(' · ')}
        >
          {() => <Request request={request} />}
        </Details>
      ))}
      {found.length > most && <Button text="Show more" act={() => setMost(most + SHOWN_AT_ONCE)} />}
    </>
  )
}

const isFailed = ({ status }: RequestRecord) => status === 0 || status >= 400

function Request({ request }: { request: Seen }) {
  const { session } = useLive()
  const { method, path, query, answer, decisions = [], request: body, trace_id, operation } = request
  const { detail, errors = {} } = ((isFailed(request) && answer) || {}) as Partial<Problem>
  const sent = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
  const search = query === undefined ? '' : `?${query.map((name) => `${name}=…`).join('&')}`
  const reasons = [detail, ...Object.entries(errors).map(([name, texts]) => `${name}: ${texts.join(', ')}`)]
  return (
    <>
      {detail !== undefined && <Code label="Why it was refused" text={reasons.join('\n')} />}
      {decisions.length > 0 && (
        <Code label="Which rule decided" text={decisions.map(describeDecision).join('\n')} />
      )}
      <p>
        Operation {operation ?? 'none'}, trace id <code>{trace_id}</code>
      </p>
      <Code label="Send again" isCopied text={curl(method, path + search, session.header, sent)} />
      {answer !== undefined && <Code label="Answer, without data" text={formatJson(answer)} />}
    </>
  )
}

function describeDecision(decision: ExplainedDecision): string {
  const { of, permission, container, token, decided_by, transform, passed_over } = decision
  const ruleOf = ({ priority, description = '' }: { priority: number; description?: string | undefined }) =>
    `rule ${priority}${description && ` (${description})`}`
  const deciders = { permissions: 'the permissions of the application', owner: 'ownership' }
  const by = decided_by && (typeof decided_by === 'string' ? deciders[decided_by] : ruleOf(decided_by))
  const verdict = by === undefined ? 'refused: nothing grants it' : `${transform}, by ${by}`
  const place = token === undefined ? container : `${container} of ${token}`
  const passed = passed_over.map(({ priority, reason }) => `rule ${priority}: ${reason}`).join('; ')
  const others = passed === '' ? '' : ` (not applied: ${passed})`
  return `${of === undefined ? '' : `${of}: `}${permission} on ${place}: ${verdict}${others}`
}
