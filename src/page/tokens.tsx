import { useEffect, useState } from 'preact/hooks'
import type { Access } from '../control/page-work.js'
import type { ResultOf } from '../operations/all.js'
import { useAsked, useLive, useRead, useRoute } from './api.js'
import { describeAccess } from './decision.js'
import { Button, Confirm, Copy, Tabs, useDialog } from './forms.js'
import { useKeys } from './frame.js'
import { Badge, Empty, Facts, NoneFits, Seeing, Table } from './parts.js'
import { SAMPLES } from './recorded.js'
import { go, linkTo, type Route } from './route.js'
import { Rows, useChosen } from './rows.js'
import { Detail, Filter, Missing, Pages, Screen } from './screen.js'
import { ApplicationLink, CodeTabs, formatSpan, Json, Time } from './text.js'
import { EditToken, NewToken } from './token-forms.js'
import { TimeLine } from './trail.js'

type Token = ResultOf<'token list'>['data'][number]

const SIZE = 100
const SOON_MS = 3_600_000
const TYPES = Object.keys(SAMPLES)
const CONTAINERS = ['/pci/', '/pii/', '/bank/', '/general/']

const NONE = {
  title: 'No token yet',
  text: 'A token stands for a value. Its mask decides which part of the value is shown. Create one here, or in a terminal:',
  command: 'coffer token generate --type card --count 10',
}

function useTokens({ filters }: Route) {
  const { find = '', type, container, page } = filters
  const words = find.trim()
  const isText = words !== '' && !words.includes(':')
  const terms = [
    words && !isText && `(${words})`,
    type && `type:${type}`,
    container && `container:${container}*`,
  ]
  const query = terms.filter(Boolean).join(' AND ')
  const input = { size: SIZE, page: Number(page ?? 1), ...(query && { query }) }
  return useRead(JSON.stringify([isText && words, input]), async (server): Promise<Found> => {
    if (isText) return server.findTokens({ text: words, query })
    return query === '' ? server.read('token list', input) : server.read('token search', input)
  })
}

/** The result of a text search has no pages. */
type Found = {
  data: readonly Token[]
  pagination?: { total_pages: number }
  searched?: number
  total?: number
}

export function Tokens() {
  const { news } = useLive()
  const route = useRoute()
  const show = useDialog()
  const { result, error } = useTokens(route)
  const { id, filters } = route
  const listed = useChosen(result?.data ?? [], (token) => token.id, id)
  // Reads the token that the address names, because it may be on another page of the list.
  const named = useAsked('token list', { id: [id ?? '-'], size: 1 }).result?.data[0]
  const chosen = listed ?? (id === named?.id ? named : undefined)
  const now = news?.now ?? 0
  const start = () => show(<NewToken />)
  useKeys({ n: start })
  const actions = <Button class="primary" text="New token" act={start} />
  const none = Object.values(filters).some(Boolean) ? (
    <NoneFits thing="token" />
  ) : (
    <Empty {...NONE}>{actions}</Empty>
  )
  return (
    <Screen
      find="4242, visa, a name, type:card"
      error={error}
      filters={[
        <Filter key="type" name="type" any="Any type" of={TYPES} />,
        <Filter key="container" name="container" any="Any container" of={CONTAINERS} />,
        <Pages key="pages" of={result?.pagination?.total_pages ?? 1} />,
        result && <Searched key="searched" of={result} />,
      ]}
      actions={actions}
    >
      <Rows
        empty={result && none}
        caption="Tokens, newest first"
        rows={result?.data ?? []}
        chosen={chosen}
        linkOf={(token) => linkTo('tokens', token.id, filters)}
        columns={[
          ['Id', 'mono link w8', ({ id }) => <span title={id}>{shortId(id)}</span>],
          ['Type', 'wide some w6', ({ type }) => type],
          ['Masked value', '', (token) => describeShown(token) ?? <span class="dim">hidden</span>],
          ['Containers', 'mono wide some w8', ({ containers }) => containers.join(' ')],
          [
            'Age',
            'number wide w5',
            ({ created_at: at }) => <span title={at}>{formatSpan(now - Date.parse(at))}</span>,
          ],
          ['Expires', 'number w6', ({ expires_at }) => <Expiry at={expires_at} now={now} />],
        ]}
      />
      {chosen && <TokenDetail key={chosen.id} token={chosen} />}
      {id !== undefined && result && !chosen && <Missing thing="token" id={id} />}
    </Screen>
  )
}

function Searched({ of: { searched = 0, total = 0 } }: { of: Found }) {
  if (searched >= total) return null
  return (
    <span class="dim small">
      Among the newest {searched} of {total} tokens, and in all search indexes
    </span>
  )
}

function Expiry({ at, now }: { at: string | undefined; now: number }) {
  if (at === undefined) return <span class="dim">never</span>
  const ms = Date.parse(at) - now
  const text = `in ${formatSpan(ms)}`
  return ms < SOON_MS ? <Badge kind="warn">{text}</Badge> : <span title={at}>{text}</span>
}

/** For example `visa •••• 4242 · 12/40`. */
function describeShown({ card, bank, data }: Token): string | undefined {
  if (card !== undefined) {
    const { brand = 'card', last4, expiration_month: month, expiration_year: year } = card
    return `${brand} •••• ${last4}${month && year ? ` · ${String(month).padStart(2, '0')}/${String(year).slice(-2)}` : ''}`
  }
  if (bank !== undefined) return `•••• ${bank.account_number_last4} · routing ${bank.routing_number}`
  const texts =
    typeof data === 'object' && data !== null
      ? Object.values(data).filter((each) => typeof each !== 'object')
      : [data]
  const shown = texts.filter((each) => each !== undefined && each !== null).slice(0, 2)
  return shown.length === 0
    ? undefined
    : shown.join(' · ').replaceAll(/X{2,}/g, (run) => '•'.repeat(run.length))
}

const shortId = (id: string) => (/^[0-9a-f]{8}-/.test(id) ? `${id.slice(0, 8)}…` : id)

function TokenDetail({ token }: { token: Token }) {
  const { ask, session } = useLive()
  const { filters } = useRoute()
  const show = useDialog()
  const { id, type, containers } = token
  const call = { method: 'GET', path: `/tokens/${encodeURIComponent(id)}`, header: session.header }
  const leave = () =>
    show(
      <Confirm
        title={`Delete the token ${shortId(id)}?`}
        text={`The data of ${id} is destroyed. Its log stays.`}
        verb="Delete"
        act={() => ask('token delete', { id }).then(() => go(linkTo('tokens', undefined, filters)))}
      />,
    )
  return (
    <Detail title={describeShown(token) ?? shortId(id)} head={<Badge kind="push">{type}</Badge>}>
      <div class="row">
        <Copy label="Copy id" text={id} />
        <Copy label="Copy expression" text={`{{ ${id} }}`} />
        <a class="button" href={linkTo('requests', undefined, { find: id })}>
          Requests with its id
        </a>
        <Button class="push" text="Edit" act={() => show(<EditToken of={token} />)} />
        <Button class="danger" text="Delete …" act={leave} />
      </div>
      <Tabs
        label="About this token"
        tabs={{
          Overview: () => <Overview token={token} />,
          'Who may read it': () => <Readers id={id} containers={containers.join(' ')} />,
          'Time line': () => <TimeLine of={{ entity: id }} />,
          Code: () => <CodeTabs call={call} />,
        }}
      />
    </Detail>
  )
}

function Overview({ token }: { token: Token }) {
  const { id, data, card, bank, metadata = {} } = token
  const pairs = Object.entries(metadata).map(([name, value]) => `${name} = ${value}`)
  const facts = {
    Id: <code>{id}</code>,
    Containers: <code>{token.containers.join(' ')}</code>,
    Brand: card?.brand,
    'Last four': card?.last4 ?? bank?.account_number_last4,
    BIN: card?.bin,
    Metadata: pairs.length === 0 ? undefined : <code>{pairs.join(', ')}</code>,
    Fingerprint: <code>{token.fingerprint}</code>,
    Created: <Time of={token.created_at} by={token.created_by} />,
    Modified: token.modified_at && <Time of={token.modified_at} by={token.modified_by} />,
    Expires: <Time of={token.expires_at} />,
  }
  return (
    <>
      {data === undefined ? (
        <p class="dim">
          {token.mask === undefined
            ? 'This token has no mask, so none of its data is shown.'
            : 'The mask of this token does not hide the secret part of the data, so this page does not show the data.'}
        </p>
      ) : (
        <Json label="Data, as its mask shows it" value={data} />
      )}
      <Facts of={facts} />
    </>
  )
}

function Readers({ id, containers }: { id: string; containers: string }) {
  const { dryRun } = useLive()
  const [found, setFound] = useState<Access[]>([])
  useEffect(() => {
    dryRun({ permission: 'token:read', target: id }).then(setFound, () => undefined)
  }, [id])
  return (
    <>
      <p>
        Who may do <code>token:read</code> on <code>{containers}</code>, and what they see:
      </p>
      <Table<Access | undefined>
        rows={[undefined, ...found]}
        columns={[
          ['Caller', '', (access) => (access ? <ApplicationLink id={access.application_id} /> : 'owner')],
          ['Sees it', '', (access) => <Seeing transform={access ? access.transform : 'reveal'} />],
          [
            'Because',
            '',
            (access) => (access ? describeAccess(access) : 'owns the vault; this page still masks the data'),
          ],
        ]}
      />
    </>
  )
}
