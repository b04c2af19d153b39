import { useState } from 'preact/hooks'
import type { List } from '../framework/page.js'
import type { OutboxLetter, OutboxMail } from '../operations/invite/noun.js'
import { useAsked } from './api.js'
import { Code, Details, Field, Form, formatJson, ListView, Shown, Status, Table, time } from './parts.js'

export function Tokens() {
  const [text, setText] = useState('')
  const query = text.includes(':') ? text : `id:${JSON.stringify(text)} OR data:${JSON.stringify(text)}`
  return (
    <ListView
      text="Tokens"
      operation={text === '' ? 'token list' : 'token search'}
      input={text === '' ? {} : { query }}
      empty=""
      head={
        <Form send={({ text: given = '' }) => setText(given.trim())}>
          <Field label="Find" type="search" name="text" placeholder="type:card AND data:4242" />
          <button type="submit">Search</button>
        </Form>
      }
    >
      {({ data, pagination }) => (
        <>
          <p class="dim">Data is masked. Search by id, type, container or search index.</p>
          <p>{pagination.total_items} found</p>
          {data.map((token) => (
            <Details
              key={token.id}
              title={[<code key="id">{token.id}</code>, ' ', <b key="type">{token.type}</b>]}
              about={`${time(token.created_at)} · ${(token.containers ?? []).join(' ')}`}
            >
              {() => <Code label="Masked" text={formatJson(token)} />}
            </Details>
          ))}
        </>
      )}
    </ListView>
  )
}

export function Applications() {
  return (
    <ListView text="Applications" operation="app list">
      {({ data }) =>
        data.map(({ id, name, type, permissions = [], rules = [], expires_at }) => (
          <article key={id}>
            <h2>
              {name} <span class="dim">{type}</span>
            </h2>
            <p class="dim">
              <code>{id}</code>
              {expires_at && `, until ${time(expires_at)}`}
            </p>
            {permissions.length > 0 && <p>May everywhere: {permissions.join(', ')}</p>}
            {permissions.length + rules.length === 0 && <p>May do nothing.</p>}
            {rules.length > 0 && (
              <Table
                label={`Rules of ${name}`}
                head={['Priority', 'Where', 'May', 'Sees', 'About']}
                rows={rules.map((rule) => [
                  rule.priority,
                  <code key="where">{rule.container}</code>,
                  rule.permissions.join(', '),
                  rule.transform,
                  rule.description,
                ])}
              />
            )}
          </article>
        ))
      }
    </ListView>
  )
}

export function Reactors() {
  return (
    <ListView text="Reactors" operation="reactor list">
      {({ data }) =>
        data.map(({ id, name }) => (
          <Details key={id} title={<b>{name}</b>} about={<code>{id}</code>}>
            {() => <Runs id={id} />}
          </Details>
        ))
      }
    </ListView>
  )
}

const format = ({ level, text }: { level: string; text: string }) => `${level}: ${text}`

function Runs({ id }: { id: string }) {
  return (
    <Shown of={useAsked('reactor logs', { id })}>
      {(runs) => (
        <>
          {runs.length === 0 && <p class="dim">It has not run yet.</p>}
          {runs.toReversed().map((run) => (
            <article key={run.id}>
              <h2>
                {time(run.created_at)}{' '}
                <Status isFault={run.outcome !== 'done'} text={`${run.outcome} ${run.status}`} />
              </h2>
              <p class="dim">
                {run.duration_ms} ms, {run.memory_mib} MiB, trace id <code>{run.trace_id}</code>
              </p>
              {run.detail && <p>{run.detail}</p>}
              {run.console.length > 0 && <Code label="Printed" text={run.console.map(format).join('\n')} />}
              {run.stack && <Code label="Stack" text={run.stack} />}
            </article>
          ))}
        </>
      )}
    </Shown>
  )
}

export function Log() {
  const [id, setId] = useState('')
  return (
    <ListView
      text="Log"
      operation="log list"
      input={{ size: 50, ...(id && { entity_id: id }) }}
      head={<Field label="Id" type="search" onChange={(event) => setId(event.currentTarget.value)} />}
    >
      {({ data }) => (
        <Table
          label="Log records"
          head={['When', 'What', 'Of', 'By']}
          rows={data.map((record) => [
            time(record.created_at),
            record.message,
            <code key="of">{record.entity_id}</code>,
            <code key="by">{`${record.actor_type ?? ''} ${record.actor_id ?? ''}`}</code>,
          ])}
        />
      )}
    </ListView>
  )
}

const STATES: Record<string, string> = {
  outbox: 'not sent: there is no mail server',
  waiting: 'waits for the mail server',
  dropped: 'not sent: its link had ended',
}

export function Outbox() {
  return (
    <ListView
      text="Outbox"
      operation="invite outbox"
      empty="No mail yet. Invite somebody: coffer invite create --email ada@example.com"
    >
      {(list) =>
        (list as List<OutboxMail>).data.map(({ id, to, subject, created_at, state }) => (
          <Details
            key={id}
            title={[<b key="to">{to}</b>, ` ${subject}`]}
            about={`${time(created_at)} · ${STATES[state] ?? state}`}
          >
            {() => <Letter id={id} />}
          </Details>
        ))
      }
    </ListView>
  )
}

function Letter({ id }: { id: string }) {
  return (
    <Shown of={useAsked('invite outbox', { id })}>
      {(found) => {
        const { link, link_expires_at, text } = found as OutboxLetter
        return (
          <>
            {link === undefined ? (
              <p>The link in this mail is not kept: it was sent, or works no longer.</p>
            ) : (
              <p>
                <a href={link}>The link of the invitation</a> works once, until {time(link_expires_at)}.
              </p>
            )}
            <Code label="Text" text={text} />
          </>
        )
      }}
    </Shown>
  )
}
