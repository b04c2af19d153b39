/** The log and the outbox. */
import { useState } from 'preact/hooks'
import type { List } from '../framework/page.js'
import type { ResultOf } from '../operations/all.js'
import type { OutboxLetter, OutboxMail } from '../operations/invite/noun.js'
import { useAction, useAsked, useLive, useNameOf } from './api.js'
import { Button } from './forms.js'
import { Badge, Copy, Detail, Empty, Facts, formatSpan, NoneFits, Terminal, Time } from './parts.js'
import { linkTo, type Route } from './route.js'
import { Rows } from './rows.js'
import { Filter, fits, ItemScreen, Screen } from './screen.js'

const LOG_SIZE = 1000
const ENTITIES = ['token', 'application', 'reactor', 'proxy', 'invitation', 'tenant']
/** The screens that show what a record is about. */
const SCREENS: Record<string, string> = {
  token: 'tokens',
  card: 'tokens',
  bank: 'tokens',
  application: 'applications',
  reactor: 'reactors',
}

type LogRecord = ResultOf<'log list'>['data'][number]

export function Log({ route }: { route: Route }) {
  const nameOf = useNameOf()
  const { ask } = useLive()
  const { act, error } = useAction()
  const [check, setCheck] = useState<ResultOf<'log verify'>>()
  const { entity, by } = route.filters
  const input = { size: LOG_SIZE, ...(entity && { entity_type: entity }) }
  const { result, error: missing } = useAsked('log list', input)
  const all = result?.data ?? []
  const who = ({ actor_id, actor_type }: LogRecord) =>
    actor_type === 'system' ? 'the vault' : nameOf(actor_id, actor_type)
  const rows = all.filter((record) => {
    const person = who(record)
    return (!by || person === by) && fits(route, `${record.entity_id} ${record.message} ${person}`)
  })
  const linkOf = ({ entity_type, entity_id }: LogRecord) =>
    linkTo(SCREENS[entity_type] ?? 'log', SCREENS[entity_type] && entity_id)
  const empty = (
    <Empty title="Nothing is logged yet">
      <p>Each change of the vault, and each read of a token, is a record here. Reads of this page are not.</p>
      <Terminal text="coffer log tail" />
    </Empty>
  )
  return (
    <Screen
      title="Log"
      route={route}
      placeholder="Id, name, what happened"
      error={error ?? missing}
      kind="split whole"
      filters={[
        <Filter key="entity" route={route} name="entity" any="Any entity" of={ENTITIES} />,
        <Filter key="by" route={route} name="by" any="By anyone" of={all.map(who).sort()} />,
      ]}
      actions={[
        check && (
          <Badge key="check" kind={check.is_whole ? 'good' : 'bad'}>
            {check.is_whole
              ? `Chain verified, ${check.records} records`
              : `Broken at record ${check.broken_at}`}
          </Badge>
        ),
        <Button
          key="verify"
          text={check ? 'Verify again' : 'Verify'}
          act={() => act(async () => setCheck(await ask('log verify')))}
        />,
      ]}
    >
      <Rows
        empty={result && (all.length > 0 || entity ? <NoneFits thing="record" /> : empty)}
        caption="Log records, newest first. Times in UTC."
        rows={rows}
        linkOf={linkOf}
        columns={[
          ['Time UTC', 'mono dim w11', ({ created_at: at }) => at.slice(0, 23).replace('T', ' ')],
          ['Who', 'w8', who],
          ['What', '', ({ message }) => message],
          ['Of', 'mono link', ({ entity_id }) => entity_id],
        ]}
      />
    </Screen>
  )
}

const STATES: Record<string, [string, string]> = {
  outbox: ['not sent', 'There is no mail server: it stays here.'],
  waiting: ['waiting', 'It waits for the mail server.'],
  sent: ['sent', 'The mail server took it.'],
  refused: ['refused', 'The mail server refused it.'],
  dropped: ['not sent', 'Its link had ended.'],
}

export function Outbox({ route }: { route: Route }) {
  const { news } = useLive()
  const { result, error } = useAsked('invite outbox', { size: 100 })
  return (
    <ItemScreen
      title="Outbox"
      screen="outbox"
      thing="mail"
      route={route}
      placeholder="Address, subject"
      error={error}
      all={(result as List<OutboxMail> | undefined)?.data}
      textOf={({ to, subject }) => `${to} ${subject}`}
      item={({ to, subject, created_at }) => (
        <>
          <span class="row">
            <b>{to}</b>
            <span class="dim small push">{formatSpan((news?.now ?? 0) - Date.parse(created_at))}</span>
          </span>
          <span class="dim">{subject}</span>
        </>
      )}
      detail={(mail) => <Letter key={mail.id} mail={mail} />}
      empty={
        <Empty title="No mail yet">
          <p>Invitations that the vault would send appear here.</p>
          <Terminal text="coffer invite create --email ada@example.com" />
        </Empty>
      }
    />
  )
}

function Letter({ mail }: { mail: OutboxMail }) {
  const letter = useAsked('invite outbox', { id: mail.id }).result as OutboxLetter | undefined
  const [state, about] = STATES[mail.state] ?? [mail.state, '']
  const dates = {
    To: mail.to,
    Date: <Time of={mail.created_at} />,
    Sent: mail.sent_at && <Time of={mail.sent_at} />,
  }
  return (
    <Detail back="#/outbox" head={<h2>{mail.subject}</h2>}>
      <div class="row">
        <Badge>{state}</Badge>
        <span class="dim">{mail.failure ?? about}</span>
      </div>
      <div class="mail">
        <Facts of={dates} />
        <hr />
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard. */}
        <pre tabIndex={0}>{letter?.text}</pre>
        <hr />
        {mail.link === undefined ? (
          mail.webhook === undefined && (
            <p class="dim">The link is not kept: the mail was sent, or the link has ended.</p>
          )
        ) : (
          <div class="row">
            <a class="button primary" href={mail.link} target="_blank" rel="noreferrer">
              Open the link
            </a>
            <Copy label="Copy the link" text={mail.link} />
            <span class="dim small">
              Works once, until <Time of={mail.link_expires_at} />
            </span>
          </div>
        )}
      </div>
    </Detail>
  )
}
