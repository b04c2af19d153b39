/** The latest requests as they come: who asked for what, why it was refused, and which rules decided. */
import { useEffect, useState } from 'preact/hooks'
import { type ExplainedDecision, type Problem, type RequestRecord, useAsked, useLive } from './api.js'
import { Button, Code, curl, Details, Fault, Field, Heading, spell, time } from './parts.js'

const POLL_MS = 1000
const SHOWN_AT_ONCE = 100

interface Seen extends RequestRecord {
  number: number
}

/** Newest first. */
function useRequests(): { list: Seen[]; isKnown: boolean; error?: string | undefined } {
  const live = useLive()
  const [list, setList] = useState<Seen[]>()
  const [error, setError] = useState<string>()
  useEffect(() => {
    let count = 0
    let isOver = false
    setList(undefined)
    const look = async () => {
      if (document.hidden) return
      try {
        const news = await live.requestsAfter(count)
        if (isOver) return
        const start = news.count - news.records.length
        const made = news.records.map((record, index) => ({ ...record, number: start + index })).reverse()
        // The server was restarted, or its requests were cleared.
        const isNew = news.count < count
        count = news.count
        setError(undefined)
        setList((old = []) => {
          const kept = isNew ? [] : old.filter(({ number }) => number >= news.first)
          return made.length === 0 && kept.length === old.length ? old : [...made, ...kept]
        })
      } catch (caught) {
        if (!isOver) setError((caught as Error).message)
      }
    }
    void look()
    const timer = setInterval(look, POLL_MS)
    return () => {
      isOver = true
      clearInterval(timer)
    }
  }, [live])
  return { list: list ?? [], isKnown: list !== undefined, error }
}

export function Requests() {
  const live = useLive()
  const { list, isKnown, error } = useRequests()
  const [text, setText] = useState('')
  const [isOnlyFailed, setOnlyFailed] = useState(false)
  const [most, setMost] = useState(SHOWN_AT_ONCE)
  const { result: apps } = useAsked('app list', { size: 100 })
  const nameOf = (id = '') => apps?.data.find((app) => app.id === id)?.name ?? id.slice(0, 8)
  const fits = (request: Seen) => {
    const about = `${request.method} ${request.path} ${request.operation} ${request.status} ${request.trace_id} ${nameOf(request.application_id)}`
    return (!isOnlyFailed || isFailed(request)) && about.toLowerCase().includes(text.toLowerCase())
  }
  const found = list.filter(fits)
  return (
    <>
      <Heading text="Requests">
        <Field
          label="Find"
          type="search"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <label>
          <input
            type="checkbox"
            checked={isOnlyFailed}
            onChange={(event) => setOnlyFailed(event.currentTarget.checked)}
          />{' '}
          only failed
        </label>
        {live.session.controls.faults && (
          <Button text="Clear" act={() => live.ask('control request clear')} />
        )}
      </Heading>
      {error !== undefined && <Fault text={error} />}
      {found.length === 0 && <p class="dim">{describeNone(isKnown, list.length)}</p>}
      {found.slice(0, most).map((request) => (
        <Details
          key={request.number}
          title={<Title request={request} />}
          about={describeRequest(request, nameOf(request.application_id))}
        >
          {() => <Request request={request} />}
        </Details>
      ))}
      {found.length > most && <Button text="Show more" act={() => setMost(most + SHOWN_AT_ONCE)} />}
    </>
  )
}

function describeNone(isKnown: boolean, count: number): string {
  if (!isKnown) return 'Loading …'
  return count === 0 ? 'No request yet. New ones appear here.' : 'None of the requests fits.'
}

const isFailed = ({ status }: RequestRecord) => status === 0 || status >= 400

function Title({ request }: { request: Seen }) {
  const { method, path, status } = request
  return (
    <>
      <b>{method}</b> <code>{path}</code>{' '}
      <span class={isFailed(request) ? 'status fault' : 'status'}>{status === 0 ? 'no answer' : status}</span>
    </>
  )
}

function describeRequest({ at, ms, fault }: Seen, who: string): string {
  return `${time(at)} · ${who || 'nobody'} · ${ms} ms${fault === undefined ? '' : ` · fault: ${fault}`}`
}

function Request({ request }: { request: Seen }) {
  const { session } = useLive()
  const { method, path, query, answer, decisions = [], request: body, trace_id, operation } = request
  const problem = isFailed(request) ? (answer as Partial<Problem> | undefined) : undefined
  const sent = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  const search = query === undefined ? '' : `?${query.map((name) => `${name}=…`).join('&')}`
  return (
    <>
      {problem?.detail !== undefined && (
        <>
          <h2>Why it was refused</h2>
          <p>{problem.detail}</p>
          <ul>
            {Object.entries(problem.errors ?? {}).map(([name, texts]) => (
              <li key={name}>
                <code>{name}</code> {texts.join(', ')}
              </li>
            ))}
          </ul>
        </>
      )}
      {decisions.length > 0 && (
        <>
          <h2>Which rule decided</h2>
          <ul>
            {decisions.map((decision, index) => (
              <li key={index}>{describeDecision(decision)}</li>
            ))}
          </ul>
        </>
      )}
      <dl class="facts">
        <dt>Operation</dt>
        <dd>{operation ?? 'none'}</dd>
        <dt>Trace id</dt>
        <dd>
          <code>{trace_id}</code>
        </dd>
      </dl>
      <Code label="Send again" isCopied text={curl(method, path + search, session.header, sent)} />
      {answer !== undefined && <Code label="Answer, without data" text={spell(answer)} />}
    </>
  )
}

function describeDecision(decision: ExplainedDecision) {
  const { of, permission, container, token, decided_by, transform, passed_over } = decision
  const by =
    decided_by === 'permissions'
      ? 'the permissions of the application'
      : decided_by === 'owner'
        ? 'ownership'
        : decided_by &&
          `rule ${decided_by.priority}${decided_by.description ? ` (${decided_by.description})` : ''}`
  const verdict = by === undefined ? 'refused: nothing grants it' : `${transform}, by ${by}`
  const others = passed_over.map(({ priority, reason }) => `rule ${priority}: ${reason}`).join('; ')
  return (
    <>
      {of !== undefined && `${of}: `}
      <code>{permission}</code> on <code>{container}</code>
      {token !== undefined && (
        <>
          {' '}
          of <code>{token}</code>
        </>
      )}
      : {verdict}
      {others !== '' && <span class="dim"> (not applied: {others})</span>}
    </>
  )
}
