import { useState } from 'preact/hooks'
import { useAsked, useEvent, useLive } from './api.js'
import { Button } from './forms.js'
import { Badge, Empty, formatSpan, NoneFits, Terminal } from './parts.js'
import { linkTo, type Route, setFilter } from './route.js'
import { type Column, Rows, useChosen } from './rows.js'
import { SAMPLES } from './samples.js'
import { Filter, Screen } from './screen.js'
import { describeShown, NewToken, shortId, type Token, TokenDetail } from './token.js'

const SIZE = 100
export const NEW = 'coffer-new'
const SOON_MS = 3_600_000
const CONTAINERS = ['/pci/', '/pii/', '/bank/', '/general/']

/** The list that the filters ask for. */
function useTokens({ filters }: Route) {
  const { find = '', type, container, page } = filters
  const paging = { size: SIZE, page: Number(page ?? 1) }
  const words = find.trim()
  const quoted = JSON.stringify(words)
  const query = [
    words && (words.includes(':') ? `(${words})` : `(id:${quoted} OR data:${quoted})`),
    type && `type:${type}`,
    container && `container:${container}*`,
  ]
  const terms = query.filter(Boolean).join(' AND ')
  const operation = terms === '' ? 'token list' : 'token search'
  return useAsked<'token list'>(operation as 'token list', { ...paging, ...(terms && { query: terms }) })
}

export function Tokens({ route }: { route: Route }) {
  const { news } = useLive()
  const [isNew, setNew] = useState(false)
  const { result, error } = useTokens(route)
  const { id, filters } = route
  const listed = useChosen(result?.data ?? [], (token) => token.id, id)
  // A permalink may name a token of another page of the list.
  const named = useAsked('token list', { id: [id ?? '-'], size: 1 }).result?.data[0]
  const chosen = listed ?? (id === named?.id ? named : undefined)
  const start = () => setNew(true)
  useEvent(NEW, start)
  const none = Object.values(filters).some(Boolean) ? <NoneFits thing="token" /> : <NoToken open={start} />
  return (
    <Screen
      title="Tokens"
      route={route}
      placeholder="type:card AND data:4242"
      error={error}
      filters={[
        <Filter key="type" route={route} name="type" any="Any type" of={Object.keys(SAMPLES)} />,
        <Filter key="container" route={route} name="container" any="Any container" of={CONTAINERS} />,
        <Pages key="pages" route={route} of={result?.pagination.total_pages ?? 1} />,
      ]}
      actions={<Button class="primary" text="New token" act={start} />}
    >
      <Rows
        empty={result && none}
        caption="Tokens, newest first"
        rows={result?.data ?? []}
        chosen={chosen}
        linkOf={(token) => linkTo('tokens', token.id, filters)}
        columns={columnsOf(news?.now ?? 0)}
      />
      {chosen && <TokenDetail key={chosen.id} token={chosen} route={route} />}
      {id !== undefined && result && !chosen && <Empty title="There is no token with this id">{id}</Empty>}
      {isNew && <NewToken close={() => setNew(false)} />}
    </Screen>
  )
}

const columnsOf = (now: number): Column<Token>[] => [
  ['Id', 'mono link w8', ({ id }) => <span title={id}>{shortId(id)}</span>],
  ['Type', 'wide some w6', ({ type }) => type],
  ['Shows', '', (token) => describeShown(token) ?? <span class="dim">no mask</span>],
  ['Containers', 'mono wide some w8', ({ containers }) => containers.join(' ')],
  [
    'Age',
    'number wide w5',
    ({ created_at: at }) => <span title={at}>{formatSpan(now - Date.parse(at))}</span>,
  ],
  ['Expires', 'number w5', ({ expires_at }) => <Expiry at={expires_at} now={now} />],
]

function Pages({ route, of }: { route: Route; of: number }) {
  const page = Number(route.filters.page ?? 1)
  const turn = (to: number) => () => setFilter(route, 'page', String(to))
  if (of < 2) return null
  return (
    <nav class="row" aria-label="Pages">
      <Button text="Newer" disabled={page <= 1} act={turn(page - 1)} />
      Page {page} of {of}
      <Button text="Older" disabled={page >= of} act={turn(page + 1)} />
    </nav>
  )
}

function Expiry({ at, now }: { at: string | undefined; now: number }) {
  if (at === undefined) return <span class="dim">never</span>
  const ms = Date.parse(at) - now
  const text = `in ${formatSpan(ms)}`
  return ms < SOON_MS ? <Badge kind="warn">{text}</Badge> : <span title={at}>{text}</span>
}

function NoToken({ open }: { open(): void }) {
  return (
    <Empty title="No token yet">
      <p>
        A token stands for a value, and its mask says what of it is shown. Make one here, or in a terminal:
      </p>
      <Terminal text="coffer token generate --type card --count 10" />
      <Button class="primary" text="New token" act={open} />
    </Empty>
  )
}
