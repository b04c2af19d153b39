/** Tokens, applications, the log and the outbox, as lists. */
import { useState } from 'preact/hooks'
import { useAsked } from './api.js'
import { Code, Details, Heading, Pager, Shown, spell, Table, time } from './parts.js'

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
      <Heading text="Tokens">
        <form
          onSubmit={(event) => {
            event.preventDefault()
            const given = new FormData(event.currentTarget).get('text')
            setAsked({ text: String(given).trim(), page: 1 })
          }}
        >
          <label>
            Find <input type="search" name="text" placeholder="type:card AND data:4242" />
          </label>
          <button type="submit">Search</button>
        </form>
        <button type="button" onClick={found.again}>
          Read again
        </button>
      </Heading>
      <p class="dim">As the vault shows them masked. A word finds ids and search indexes.</p>
      <Shown of={found}>
        {({ data, pagination }) => (
          <>
            <p>{pagination.total_items} found</p>
            {data.map((token) => (
              <Details
                key={token.id}
                summary={
                  <>
                    <code>{token.id}</code> <b>{token.type}</b>
                    <br />
                    <span class="dim">
                      {time(token.created_at)} · {(token.containers ?? []).join(' ')}
                    </span>
                  </>
                }
              >
                {() => <Code label="Masked" text={spell(token)} />}
              </Details>
            ))}
            <Pager
              page={page}
              pages={pagination.total_pages}
              turn={(turned) => setAsked({ text, page: turned })}
            />
          </>
        )}
      </Shown>
    </>
  )
}

export function Applications() {
  const [page, setPage] = useState(1)
  const found = useAsked('app list', { page, size: PAGE })
  return (
    <>
      <Heading text="Applications" />
      <Shown of={found}>
        {({ data, pagination }) => (
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
            <Pager page={page} pages={pagination.total_pages} turn={setPage} />
          </>
        )}
      </Shown>
    </>
  )
}

export function Log() {
  const [asked, setAsked] = useState({ id: '', page: 1 })
  const { id, page } = asked
  const found = useAsked('log list', { page, size: 50, ...(id === '' ? {} : { entity_id: id }) })
  return (
    <>
      <Heading text="Log">
        <label>
          Id{' '}
          <input type="search" onChange={(event) => setAsked({ id: event.currentTarget.value, page: 1 })} />
        </label>
        <button type="button" onClick={found.again}>
          Read again
        </button>
      </Heading>
      <Shown of={found}>
        {({ data, pagination }) => (
          <>
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
            <Pager
              page={page}
              pages={pagination.total_pages}
              turn={(turned) => setAsked({ id, page: turned })}
            />
          </>
        )}
      </Shown>
    </>
  )
}

interface Mail {
  id: string
  to: string
  subject: string
  state: string
  created_at: string
  link?: string
  link_expires_at: string
  text: string
}

const STATES: Record<string, string> = {
  outbox: 'not sent: there is no mail server',
  waiting: 'waits for the mail server',
  dropped: 'not sent: its link had ended',
}

export function Outbox() {
  const [page, setPage] = useState(1)
  const found = useAsked('invite outbox', { page, size: PAGE })
  return (
    <>
      <Heading text="Outbox">
        <button type="button" onClick={found.again}>
          Read again
        </button>
      </Heading>
      <Shown of={found}>
        {(result) => {
          const { data, pagination } = result as { data: Mail[]; pagination: { total_pages: number } }
          return (
            <>
              {data.length === 0 && (
                <p class="dim">
                  No mail yet. Invite somebody: <code>coffer invite create --email ada@example.com</code>
                </p>
              )}
              {data.map((mail) => (
                <Details
                  key={mail.id}
                  summary={
                    <>
                      <b>{mail.to}</b> {mail.subject}
                      <br />
                      <span class="dim">
                        {time(mail.created_at)} · {STATES[mail.state] ?? mail.state}
                      </span>
                    </>
                  }
                >
                  {() => <Letter mail={mail} />}
                </Details>
              ))}
              <Pager page={page} pages={pagination.total_pages} turn={setPage} />
            </>
          )
        }}
      </Shown>
    </>
  )
}

function Letter({ mail: { id, link, link_expires_at } }: { mail: Mail }) {
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
          <Code label="Text" text={(mail as Mail).text} />
        </>
      )}
    </Shown>
  )
}
