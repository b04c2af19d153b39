/** The screens of the log, of the outbox and of webhooks. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { List } from '../framework/page.js'
import type { ResultOf } from '../operations/all.js'
import type { OutboxLetter, OutboxMail } from '../operations/invite/noun.js'
import { type Asked, useAsked, useLive, useNameOf, useRoute } from './api.js'
import { Button, Copy, Failure } from './forms.js'
import { Badge, Empty, Facts, NoneFits, Note, Table } from './parts.js'
import { linkTo } from './route.js'
import { Rows } from './rows.js'
import { Detail, Filter, fits, Item, ItemScreen, Screen } from './screen.js'
import { formatSpan, formatTime, Json, Time } from './text.js'
import { ChangeWebhook, NewWebhook } from './webhook-forms.js'

const LOG_SIZE = 1000
const ENTITIES = ['token', 'application', 'reactor', 'proxy', 'threeds_session', 'invitation', 'tenant']
/** By type of entity in the log: the screen that shows the entity. */
const SCREENS: Record<string, string> = {
  token: 'tokens',
  card: 'tokens',
  bank: 'tokens',
  application: 'applications',
  reactor: 'reactors',
  threeds_session: '3ds',
  proxy: 'proxies',
  invitation: 'members',
  member: 'members',
  webhook: 'webhooks',
}

const NONE = {
  title: 'Nothing is logged yet',
  text: 'Coffer logs each change of the vault and each read of a token here, but not the reads of this page.',
  command: 'coffer log tail',
}

type LogRecord = ResultOf<'log list'>['data'][number]

export function Log() {
  const nameOf = useNameOf()
  const { ask } = useLive()
  const route = useRoute()
  const [check, setCheck] = useState<ResultOf<'log verify'>>()
  const { entity, by } = route.filters
  const { result, error } = useAsked('log list', { size: LOG_SIZE, ...(entity && { entity_type: entity }) })
  const all = result?.data ?? []
  const who = ({ actor_id, actor_type }: LogRecord) =>
    actor_type === 'system' ? 'the vault' : nameOf(actor_id, actor_type)
  const rows = all.filter((record) => {
    const person = who(record)
    return (!by || person === by) && fits(route, `${record.entity_id} ${record.message} ${person}`)
  })
  const linkOf = ({ entity_type, entity_id }: LogRecord) =>
    linkTo(SCREENS[entity_type] ?? 'log', SCREENS[entity_type] && entity_id)
  const found = check?.is_whole
    ? `Chain verified, ${check.records} records`
    : `Broken at record ${check?.broken_at}`
  return (
    <Screen
      find="Id, name, what happened"
      error={error}
      kind="split whole"
      filters={[
        <Filter key="entity" name="entity" any="Any entity" of={ENTITIES} />,
        <Filter key="by" name="by" any="By anyone" of={all.map(who).sort()} />,
      ]}
      actions={
        <>
          {check && <Badge kind={check.is_whole ? 'good' : 'bad'}>{found}</Badge>}
          <Button
            text={check ? 'Verify again' : 'Verify'}
            act={async () => setCheck(await ask('log verify'))}
          />
        </>
      }
    >
      <Rows
        empty={result && (all.length > 0 || entity ? <NoneFits thing="record" /> : <Empty {...NONE} />)}
        caption="Log records, newest first. Times in UTC."
        rows={rows}
        linkOf={linkOf}
        columns={[
          ['Time UTC', 'mono dim w11', ({ created_at }) => formatTime(created_at, 23)],
          ['Who', 'w8', who],
          ['What', 'first', ({ message }) => message],
          ['Object', 'mono link', ({ entity_id }) => entity_id],
        ]}
      />
    </Screen>
  )
}

const STATES: Record<string, [string, string]> = {
  outbox: ['not sent', 'There is no mail server, so the mail stays here.'],
  waiting: ['waiting', 'The mail waits for the mail server.'],
  sent: ['sent', 'The mail server accepted the mail.'],
  refused: ['refused', 'The mail server refused the mail.'],
  dropped: ['not sent', 'The link in the mail had expired.'],
}

export function Outbox() {
  const { news } = useLive()
  const ageOf = (date: string) => formatSpan((news?.now ?? 0) - Date.parse(date))
  return (
    <ItemScreen
      thing="mail"
      find="Address, subject"
      asked={useAsked('invite outbox', { size: 100 }) as Asked<List<OutboxMail>>}
      textOf={({ to, subject }) => `${to} ${subject}`}
      item={({ to, subject, created_at }) => (
        <Item name={to} tag={<span class="dim small push">{ageOf(created_at)}</span>} about={subject} />
      )}
      detail={Letter}
      empty={[
        'No mail yet',
        'Invitations that the vault would send appear here.',
        'coffer invite create --email ada@example.com',
      ]}
    />
  )
}

function Letter({ of: mail }: { of: OutboxMail }) {
  const letter = useAsked('invite outbox', { id: mail.id }).result as OutboxLetter | undefined
  const [state, about] = STATES[mail.state] ?? [mail.state, '']
  const dates = {
    To: mail.to,
    Date: <Time of={mail.created_at} />,
    Sent: mail.sent_at && <Time of={mail.sent_at} />,
  }
  return (
    <Detail title={mail.subject}>
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
        {mail.link && (
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
        {!mail.link && mail.webhook === undefined && (
          <p class="dim">The link is no longer stored, because the mail was sent or the link has expired.</p>
        )}
      </div>
    </Detail>
  )
}

type Webhook = ResultOf<'webhook list'>['data'][number]
type Delivery = ResultOf<'webhook deliveries'>['data'][number]

const KINDS: Record<Delivery['state'], string> = { sent: 'good', waiting: 'warn', failed: 'bad', dropped: '' }

export const Webhooks = () => (
  <ItemScreen
    thing="webhook"
    find="Name, address, event"
    asked={useAsked('webhook list')}
    actions={<NewWebhook />}
    textOf={({ name, url, events }) => `${name} ${url} ${events.join(' ')}`}
    item={({ name, url, status }) => (
      <Item
        name={name}
        tag={<Badge kind={status === 'enabled' ? 'push' : 'push warn'}>{status}</Badge>}
        about={url}
      />
    )}
    detail={Deliveries}
    empty={[
      'No webhook yet',
      'A webhook sends events to an address.',
      'coffer webhook create --name billing --address https://example.com/events --event token.created',
    ]}
  />
)

/** Tells why the server does not reach the address of a webhook, and what to do. */
function Unreachable({ of: { destination } }: { of: Webhook }) {
  if (destination === undefined) return null
  const { state, since, failure, next_attempt_at } = destination
  return (
    <Note
      kind="warn"
      title={state === 'blocked' ? 'The server may not call this address' : 'Deliveries fail'}
    >
      <p>{failure}</p>
      <Facts
        of={{ Since: <Time of={since} />, 'Next attempt': next_attempt_at && <Time of={next_attempt_at} /> }}
      />
    </Note>
  )
}

function Deliveries({ of: webhook }: { of: Webhook }) {
  const { id, name, url, events, status } = webhook
  const { ask } = useLive()
  const [opened, setOpened] = useState<string>()
  const [resent, setResent] = useState<string>()
  const { result, error } = useAsked('webhook deliveries', { id, size: 100 })
  const all = result?.data ?? []
  const shown = all.find((each) => each.id === opened) ?? all[0]
  const resend = async (delivery: Delivery) => {
    await ask('webhook resend', { id: delivery.id })
    setResent(`${delivery.type} is sent again. Watch its state.`)
  }
  return (
    <Detail
      title={name}
      head={[<Badge key="status">{status}</Badge>, <ChangeWebhook key="change" of={webhook} />]}
    >
      <Facts of={{ Address: url, Events: events.join(', '), 'Mail to': webhook.notify_email }} />
      <Failure text={error} />
      <Unreachable of={webhook} />
      <h3>Deliveries of the last 24 hours</h3>
      {shown === undefined && <p class="dim">Nothing was sent yet.</p>}
      <p role="status" class="dim small">
        {resent}
      </p>
      <Table
        rows={all}
        columns={[
          ['Time UTC', '', ({ created_at }) => <code>{formatTime(created_at)}</code>],
          ['Event', '', ({ type }) => type],
          ['State', '', (each) => <Badge kind={KINDS[each.state]}>{[each.state, ' ', each.status]}</Badge>],
          ['Attempts', 'number', ({ attempts }) => attempts],
        ]}
        actions={(each) => [
          ['Show', ` delivery ${each.id.slice(0, 8)}`, () => setOpened(each.id)],
          ['Send again', `: delivery ${each.id.slice(0, 8)}`, () => resend(each)],
        ]}
      />
      {shown && <DeliveryDetail key={shown.id} delivery={shown} isOpened={shown.id === opened} />}
    </Detail>
  )
}

function DeliveryDetail({ delivery, isOpened }: { delivery: Delivery; isOpened: boolean }) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    if (!isOpened) return
    heading.current!.scrollIntoView({ block: 'start' })
    heading.current!.focus()
  }, [isOpened])
  const { id, type, payload, answer, failure, due_at, attempted_at } = delivery
  const facts = {
    Delivery: <code>{id}</code>,
    'Last attempt': attempted_at && <Time of={attempted_at} />,
    'Next attempt': due_at && <Time of={due_at} />,
    Failure: failure,
  }
  return (
    <>
      <h3 ref={heading} tabIndex={-1}>
        {type}
      </h3>
      <Facts of={facts} />
      <Json label="Payload" value={payload} isCopied />
      {answer && (
        <p class="dim small">
          The receiver answered with {answer.slice(1, -1)}. This page does not show them, because they may
          contain data. Show them: <code>coffer webhook deliveries {id}</code>
        </p>
      )}
    </>
  )
}
