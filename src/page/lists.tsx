/** The log, the outbox and webhooks. */
import { useState } from 'preact/hooks'
import type { List } from '../framework/page.js'
import type { ResultOf } from '../operations/all.js'
import type { OutboxLetter, OutboxMail } from '../operations/invite/noun.js'
import { useAction, useAsked, useLive, useNameOf } from './api.js'
import { Button, Failure } from './forms.js'
import {
  Badge,
  Code,
  Copy,
  Detail,
  Empty,
  Facts,
  formatSpan,
  Json,
  NoneFits,
  Table,
  Terminal,
  Time,
} from './parts.js'
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

type Webhook = ResultOf<'webhook list'>['data'][number]
type Delivery = ResultOf<'webhook deliveries'>['data'][number]

const KINDS: Record<Delivery['state'], string> = { sent: 'good', waiting: 'warn', failed: 'bad', dropped: '' }

export function Webhooks({ route }: { route: Route }) {
  const { result, error } = useAsked('webhook list')
  return (
    <ItemScreen
      title="Webhooks"
      screen="webhooks"
      thing="webhook"
      route={route}
      placeholder="Name, address, event"
      error={error}
      all={result?.data}
      textOf={({ name, url, events }) => `${name} ${url} ${events.join(' ')}`}
      item={({ name, url, status }) => [
        <span key="name" class="row">
          <b>{name}</b>
          <Badge kind={status === 'enabled' ? 'push' : 'push warn'}>{status}</Badge>
        </span>,
        <span key="url" class="dim">
          {url}
        </span>,
      ]}
      detail={(webhook) => <Deliveries key={webhook.id} webhook={webhook} />}
      empty={
        <Empty title="No webhook yet">
          <p>A webhook is an address that is told of events.</p>
          <Terminal text="coffer webhook create --name billing --address https://example.com/events --event token.created" />
        </Empty>
      }
    />
  )
}

function Deliveries({ webhook: { id, name, url, events, status } }: { webhook: Webhook }) {
  const { ask } = useLive()
  const [opened, setOpened] = useState<string>()
  const { act, error } = useAction()
  const { result, error: missing } = useAsked('webhook deliveries', { id, size: 100 })
  const all = result?.data ?? []
  const shown = all.find((each) => each.id === opened) ?? all[0]
  const rows = all.map((each) => [
    <code key="at">{each.created_at.slice(0, 19).replace('T', ' ')}</code>,
    each.type,
    <Badge key="state" kind={KINDS[each.state]}>
      {each.state} {each.status}
    </Badge>,
    each.attempts,
    <span key="actions" class="row end">
      <Button
        text="Show"
        aria-label={`Show delivery ${each.id.slice(0, 8)}`}
        act={() => setOpened(each.id)}
      />
      <Button
        text="Send again"
        aria-label={`Send again: delivery ${each.id.slice(0, 8)}`}
        act={() => act(() => ask('webhook resend', { id: each.id }))}
      />
    </span>,
  ])
  const head = [<h2 key="name">{name}</h2>, <Badge key="status">{status}</Badge>]
  return (
    <Detail back="#/webhooks" head={head}>
      <Facts of={{ Address: url, Events: events.join(', ') }} />
      <Failure text={error ?? missing} />
      <h3>Deliveries of the last 24 hours</h3>
      {rows.length === 0 && <p class="dim">Nothing was sent yet.</p>}
      {rows.length > 0 && (
        <Table head={['Time UTC', 'Event', 'State', 'Attempts', 'Actions']} rows={rows} right={3} />
      )}
      {shown && <DeliveryDetail delivery={shown} />}
    </Detail>
  )
}

function DeliveryDetail({ delivery }: { delivery: Delivery }) {
  const { id, payload, answer, failure, due_at, attempted_at } = delivery
  return (
    <>
      <Facts
        of={{
          Delivery: <code>{id}</code>,
          'Last attempt': attempted_at && <Time of={attempted_at} />,
          'Next attempt': due_at && <Time of={due_at} />,
          Failure: failure,
        }}
      />
      <Json label="Payload" value={payload} isCopied />
      {answer && <Code label="Answer" text={answer} />}
    </>
  )
}
