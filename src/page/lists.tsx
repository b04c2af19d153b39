/** Tokens, applications, the log and the outbox, as lists. */
import { useState } from 'preact/hooks'
import type { List } from '../framework/page.js'
import type { OutboxLetter, OutboxMail } from '../operations/invite/outbox.js'
import { type Asked, useAsked } from './api.js'
import { Code, Details, Field, Form, Heading, Paged, Shown, spell, Table, time } from './parts.js'

const PAGE = 20

export function Tokens() {
  const [asked, setAsked] = useState({ text: '', page: 1 })
  const { text, page } = asked
  const query = text.includes(':') ? text : `id:${JSON.stringify(text)} OR data:${JSON.stringify(text)}`
  const found = useAsked(text === '' ? 'token list' : 'token search', {
    page,
    size: PAGE,
    ...(text === '' ? {} : { query }),
  })
  return (
    <>
      <Heading text="Tokens" again={found.again}>
        <Form send={({ text: given = '' }) => setAsked({ text: given.trim(), page: 1 })}>
          <Field label="Find" type="search" name="text" placeholder="type:card AND data:4242" />
          <button type="submit">Search</button>
        </Form>
      </Heading>
      <p class="dim">Data is masked. Search by id, type, container or search index.</p>
      <Paged of={found} page={page} turn={(turned) => setAsked({ text, page: turned })}>
        {({ data, pagination }) => (
          <>
            <p>{pagination.total_items} found</p>
            {data.map((token) => (
              <Details
                key={token.id}
                title={[<code key="id">{token.id}</code>, ' ', <b key="type">{token.type}</b>]}
                about={`${time(token.created_at)} · ${(token.containers ?? []).join(' ')}`}
              >
                {() => <Code label="Masked" text={spell(token)} />}
              </Details>
            ))}
          </>
        )}
      </Paged>
    </>
  )
}

export function Applications() {
  const [page, setPage] = useState(1)
  const found = useAsked('app list', { page, size: PAGE })
  return (
    <>
      <Heading text="Applications" />
      <Paged of={found} page={page} turn={setPage}>
        {({ data }) => (
          <>
            {data.length === 0 && <p class="dim">None yet.</p>}
            {data.map(({ id, name, type, permissions = [], rules = [], expires_at }) => (
              <article key={id}>
                <h2>
                  {name} <span class="dim">{type}</span>
                </h2>
                <p class="dim">
                  <code>{id}</code>
                  {expires_at && `, until ${time(expires_at)}`}
                </p>
                <p>
                  {permissions.length > 0 && 'May everywhere: '}
                  {permissions.map((permission) => (
                    <code key={permission}>{permission} </code>
                  ))}
                  {permissions.length + rules.length === 0 && 'May do nothing.'}
                </p>
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
            ))}
          </>
        )}
      </Paged>
    </>
  )
}

export function Log() {
  const [asked, setAsked] = useState({ id: '', page: 1 })
  const { id, page } = asked
  const found = useAsked('log list', { page, size: 50, ...(id === '' ? {} : { entity_id: id }) })
  return (
    <>
      <Heading text="Log" again={found.again}>
        <Field
          label="Id"
          type="search"
          onChange={(event) => setAsked({ id: event.currentTarget.value, page: 1 })}
        />
      </Heading>
      <Paged of={found} page={page} turn={(turned) => setAsked({ id, page: turned })}>
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
      </Paged>
    </>
  )
}

const STATES: Record<string, string> = {
  outbox: 'not sent: there is no mail server',
  waiting: 'waits for the mail server',
  dropped: 'not sent: its link had ended',
}

export function Outbox() {
  const [page, setPage] = useState(1)
  // Without an id the operation returns a list.
  const found = useAsked('invite outbox', { page, size: PAGE }) as Asked<List<OutboxMail>>
  return (
    <>
      <Heading text="Outbox" again={found.again} />
      <Paged of={found} page={page} turn={setPage}>
        {({ data }) => (
          <>
            {data.length === 0 && (
              <p class="dim">
                No mail yet. Invite somebody: <code>coffer invite create --email ada@example.com</code>
              </p>
            )}
            {data.map((mail) => (
              <Details
                key={mail.id}
                title={[<b key="to">{mail.to}</b>, ` ${mail.subject}`]}
                about={`${time(mail.created_at)} · ${STATES[mail.state] ?? mail.state}`}
              >
                {() => <Letter mail={mail} />}
              </Details>
            ))}
          </>
        )}
      </Paged>
    </>
  )
}

function Letter({ mail: { id, link, link_expires_at } }: { mail: OutboxMail }) {
  const found = useAsked('invite outbox', { id })
  return (
    <Shown of={found}>
      {(mail) => (
        <>
          <p>
            {link === undefined ? (
              'The link in this mail is not kept: it was sent, or works no longer.'
            ) : (
              <>
                <a href={link}>The link of the invitation</a> works once, until {time(link_expires_at)}.
              </>
            )}
          </p>
          <Code label="Text" text={(mail as OutboxLetter).text} />
        </>
      )}
    </Shown>
  )
}
