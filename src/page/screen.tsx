import type { ComponentChildren, FunctionComponent } from 'preact'
import { useEffect } from 'preact/hooks'
import { type Asked, useAction, useLive, useRoute } from './api.js'
import { ActProvider, type Choices, Choose, Failure, wordsOf } from './forms.js'
import { Empty, Loading, Method, NoneFits } from './parts.js'
import { linkTo, type Route, setFilter, titleOf } from './route.js'
import { Items, useChosen } from './rows.js'

interface Bar {
  /** The placeholder of the search field, which names the searched fields. */
  find?: string
  filters?: ComponentChildren
  actions?: ComponentChildren
  error?: string | undefined
  isLoading?: boolean
}

type ScreenProps = Bar & { kind?: string; children: ComponentChildren }

export function Screen({
  find,
  filters,
  actions,
  error,
  isLoading = false,
  kind = 'split',
  children,
}: ScreenProps) {
  const route = useRoute()
  const { act, error: failed } = useAction()
  const title = titleOf(route.screen)
  return (
    <ActProvider value={act}>
      <section class="screen" aria-labelledby="title">
        <div class="bar">
          <h1 id="title">{title}</h1>
          {find && (
            <input
              type="search"
              aria-label={`Find in ${title}`}
              placeholder={`${find}  /`}
              value={route.filters.find ?? ''}
              onInput={(event) => setFilter(route, 'find', event.currentTarget.value)}
            />
          )}
          {filters}
          {actions && <span class="push row">{actions}</span>}
        </div>
        <Failure text={failed ?? error} />
        {kind === 'page' && <Loading isOn={isLoading} />}
        <div class={kind} data-open={route.id === undefined ? undefined : ''}>
          {children}
        </div>
      </section>
    </ActProvider>
  )
}

interface FilterProps {
  name: string
  label?: string
  /** The text of the choice without a filter. */
  any: string
  of: Choices
}

export function Filter({ name, label = name, any, of }: FilterProps) {
  const route = useRoute()
  const choose = (value: string) => setFilter(route, name, value)
  return (
    <Choose
      label={label}
      of={{ '': any, ...wordsOf(of) }}
      value={route.filters[name] ?? ''}
      choose={choose}
    />
  )
}

export const fits = ({ filters: { find = '' } }: Route, text: string) =>
  text.toLowerCase().includes(find.toLowerCase())

interface DetailProps {
  title: string
  method?: string
  /** Shown beside the title. */
  head?: ComponentChildren
  kind?: string
  children: ComponentChildren
}

export function Detail({ title, method, head, kind = 'stack', children }: DetailProps) {
  const { screen, id, filters } = useRoute()
  const { act, error } = useAction()
  // The page sets a title with the id of the item in a layout effect. An effect runs later, so the title of the
  // detail replaces that title.
  useEffect(() => {
    if (id !== undefined) document.title = [title, titleOf(screen), 'Coffer'].join(' · ')
  }, [title, id, screen])
  return (
    <ActProvider value={act}>
      <article class={`detail ${kind}`} aria-label="Detail">
        <div class="head">
          <a class="button back" href={linkTo(screen, undefined, filters)}>
            Back
          </a>
          {method && <Method name={method} />}
          <h2 class={method && 'mono'}>{title}</h2>
          {head}
        </div>
        <Failure text={error} />
        {children}
      </article>
    </ActProvider>
  )
}

/** The detail for an address whose item does not exist. */
export function Missing({ thing, id, why }: { thing: string; id: string; why?: string }) {
  const { session, news } = useLive()
  const others = [session.tenants.length > 1 && 'tenant', (news?.forks ?? []).length > 0 && 'fork']
  const elsewhere = others.filter(Boolean).join(' or ')
  return (
    <Detail title={`There is no ${thing} ${id}`}>
      <p>{why ?? (elsewhere ? `It was deleted, or it is in another ${elsewhere}.` : 'It was deleted.')}</p>
    </Detail>
  )
}

type ItemProps = { name: string; tag?: ComponentChildren; about: string }

export const Item = ({ name, tag, about }: ItemProps) => (
  <>
    <span class="row">
      <b>{name}</b>
      {tag}
    </span>
    <span class="dim">{about}</span>
  </>
)

interface ItemsOf<R> extends Bar {
  /** The noun for a row. The message that no row matches the search contains this noun. */
  thing: string
  asked: Asked<{
    data: readonly R[]
    pagination?: { total_items?: number | undefined; page_size?: number | undefined }
  }>
  textOf(row: R): string
  item(row: R): ComponentChildren
  detail: FunctionComponent<{ of: R }>
  groupOf?(row: R): string
  itemClass?: string
  /** Title, text and command, shown while the list is empty. */
  empty?: [string, string, string]
}

export function ItemScreen<R extends { id: string }>(given: ItemsOf<R>) {
  const { thing, asked, textOf, item, detail: Shown, groupOf, itemClass, empty, ...bar } = given
  const route = useRoute()
  const all = asked.result?.data
  const rows = (all ?? []).filter((row) => fits(route, textOf(row)))
  const chosen = useChosen(rows, ({ id }) => id, route.id)
  const [title, text, command] = empty ?? []
  const nothing = title && <Empty {...{ title, text, command }}>{bar.actions}</Empty>
  const none = all && (all.length === 0 ? nothing : <NoneFits thing={thing} />)
  const linkOf = ({ id }: R) => linkTo(route.screen, id, route.filters)
  const total = asked.result?.pagination?.total_items ?? 0
  const isCut = all !== undefined && total > all.length
  const cut = isCut && (
    <span class="dim small">
      The newest {all.length} of {total}
    </span>
  )
  return (
    <Screen {...bar} filters={[bar.filters, cut]} error={asked.error} kind="split reader">
      <Items {...{ rows, chosen, linkOf, groupOf, itemClass }} empty={none}>
        {item}
      </Items>
      {chosen && <Shown key={chosen.id} of={chosen} />}
      {!chosen && route.id !== undefined && all && <Missing thing={thing} id={route.id} />}
    </Screen>
  )
}
