import { useEffect, useRef, useState } from 'preact/hooks'
import type { Judged } from '../control/page-management.js'
import { divideRefusal } from '../domain/allow-net-advice.js'
import type { List } from '../framework/page.js'
import type { ResultOf } from '../operations/all.js'
import type { OutboxLetter, OutboxMail } from '../operations/invite/noun.js'
import { type Asked, useAsked, useLive, useRoute } from './api.js'
import { Copy, Failure } from './forms.js'
import { Badge, Facts, Note, Table } from './parts.js'
import { Detail, Item, ItemScreen, usePaging } from './screen.js'
import { formatSpan, formatTime, Json, Refusal, Time } from './text.js'
import { EntityLink, TimeLine } from './trail.js'
import { ChangeWebhook, NewWebhook } from './webhook-forms.js'

const STATES: Record<string, [string, string]> = {
  outbox: ['not sent', 'There is no mail server, so the mail stays here.'],
  waiting: ['waiting', 'The mail waits for the mail server.'],
  sent: ['sent', 'The mail server accepted the mail.'],
  refused: ['refused', 'The mail server refused the mail.'],
  dropped: ['not sent', 'The link was used, replaced or withdrawn before the mail was sent.'],
}

export function Outbox() {
  const { news } = useLive()
  const ageOf = (date: string) => formatSpan((news?.now ?? 0) - Date.parse(date))
  return (
    <ItemScreen
      thing="mail"
      find="Address, subject"
      asked={useAsked('invite outbox', usePaging()) as Asked<List<OutboxMail>>}
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
          <p class="dim">
            The link is no longer stored, because the mail was sent, or the link was used, replaced or
            withdrawn.
          </p>
        )}
      </div>
      {mail.trace_id && <h3>Time line</h3>}
      {mail.trace_id && <TimeLine of={{ trace: mail.trace_id }} current={mail.id} />}
    </Detail>
  )
}

type Webhook = Judged<ResultOf<'webhook list'>['data'][number]>
type Delivery = ResultOf<'webhook deliveries'>['data'][number]

const KINDS: Record<Delivery['state'], string> = { sent: 'good', waiting: 'warn', failed: 'bad', dropped: '' }

export const Webhooks = () => (
  <ItemScreen
    thing="webhook"
    find="Name, address, event"
    asked={useAsked('webhook list', { size: 100 }) as Asked<{ data: Webhook[] }>}
    actions={<NewWebhook />}
    textOf={({ name, url, events }) => `${name} ${url} ${events.join(' ')}`}
    item={(webhook) => <Item name={webhook.name} tag={<WebhookState of={webhook} />} about={webhook.url} />}
    detail={Deliveries}
    empty={[
      'No webhook yet',
      'A webhook sends events to an address.',
      'coffer webhook create --name billing --address https://example.com/events --event token.created',
    ]}
  />
)

/** If the webhook is enabled, but the address is blocked or fails, shows the state of the address. */
function WebhookState({ of: { status, destination } }: { of: Webhook }) {
  const shown = status === 'enabled' ? (destination?.state ?? status) : status
  const kinds: Record<string, string> = { enabled: '', blocked: 'bad' }
  return <Badge kind={`push ${kinds[shown] ?? 'warn'}`}>{shown}</Badge>
}

const NO_ATTEMPT = 'none while blocked'

/** Explains why deliveries fail, and what to do. */
function Unreachable({ of: { destination } }: { of: Webhook }) {
  if (destination === undefined) return null
  const { state, since, failure, next_attempt_at } = destination
  return (
    <Note
      kind="warn"
      title={state === 'blocked' ? 'The server is not allowed to call this address' : 'Deliveries fail'}
    >
      {failure && <Refusal text={failure} />}
      <Facts
        of={{
          Since: <Time of={since} />,
          'Next attempt': next_attempt_at ? <Time of={next_attempt_at} /> : NO_ATTEMPT,
        }}
      />
    </Note>
  )
}

function Deliveries({ of: webhook }: { of: Webhook }) {
  const { id, name, url, events, status, refusal } = webhook
  const { ask } = useLive()
  const { filters } = useRoute()
  const [opened, setOpened] = useState(filters.delivery)
  useEffect(() => setOpened(filters.delivery), [filters.delivery])
  const [resent, setResent] = useState<string>()
  const { result, error } = useAsked('webhook deliveries', { id, size: 100 })
  const all = result?.data ?? []
  const isBlocked = webhook.destination?.state === 'blocked'
  const shown = all.find((each) => each.id === opened) ?? all[0]
  const resend = async (delivery: Delivery) => {
    if (refusal !== undefined) return setResent(`Not sent: ${divideRefusal(refusal).reason}`)
    await ask('webhook resend', { id: delivery.id })
    setResent(`The event ${delivery.type} is sent again. Watch the state of the delivery.`)
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
          ['Object', '', (each) => <EventObject of={each} />],
          ['State', '', (each) => <DeliveryState of={each} isBlocked={isBlocked} />],
          ['Attempts', 'number', ({ attempts }) => attempts],
        ]}
        actions={(each) => [
          ['Show', ` delivery ${each.id.slice(0, 8)}`, () => setOpened(each.id)],
          ['Send again', `: delivery ${each.id.slice(0, 8)}`, () => resend(each)],
        ]}
      />
      {shown && (
        <DeliveryDetail
          key={shown.id}
          delivery={shown}
          isOpened={shown.id === opened}
          isBlocked={isBlocked}
        />
      )}
    </Detail>
  )
}

function EventObject({ of: { type, payload } }: { of: Delivery }) {
  const { data } = (payload as { event: { data: Record<string, { id?: string } | null> } }).event
  const id = Object.values(data).find((each) => each?.id !== undefined)?.id
  return id === undefined ? null : <EntityLink type={type.split('.')[0]!} id={id} />
}

/** A delivery to a blocked address is not attempted until the address is allowed. */
function DeliveryState({ of: { state, status }, isBlocked }: { of: Delivery; isBlocked: boolean }) {
  if (isBlocked && state === 'waiting') return <Badge kind="bad">blocked</Badge>
  return <Badge kind={KINDS[state]}>{[state, ' ', status]}</Badge>
}

type DetailProps = { delivery: Delivery; isOpened: boolean; isBlocked: boolean }

function DeliveryDetail({ delivery, isOpened, isBlocked }: DetailProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    if (!isOpened) return
    heading.current!.scrollIntoView({ block: 'start' })
    heading.current!.focus()
  }, [isOpened])
  const { id, type, state, payload, answer, failure, due_at, attempted_at } = delivery
  const { trace_id: trace } = (payload as { event: { trace_id: string } }).event
  const facts = {
    Delivery: <code>{id}</code>,
    'Trace id': <code>{trace}</code>,
    'Last attempt': attempted_at && <Time of={attempted_at} />,
    'Next attempt': isBlocked && state === 'waiting' ? NO_ATTEMPT : due_at && <Time of={due_at} />,
    Failure: failure && divideRefusal(failure).reason,
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
          The answer of the receiver has {answer.slice(1, -1)}. This page does not show the answer, because it
          may contain data. Show it: <code>coffer webhook deliveries {id}</code>
        </p>
      )}
      <h3>Time line</h3>
      <TimeLine of={{ trace }} current={id} />
    </>
  )
}
