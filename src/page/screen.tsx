import type { ComponentChildren, FunctionComponent } from 'preact'
import { useEffect } from 'preact/hooks'
import { type Asked, useAction, useAsked, useLive, useRoute } from './api.js'
import { ActProvider, Button, type Choices, Choose, Failure, wordsOf } from './forms.js'
import { Empty, Loading, Method, NoneFits } from './parts.js'
import { go, linkTo, type Route, setFilter, titleOf } from './route.js'
import { Items, useChosen } from './rows.js'

interface Bar {
  /** The placeholder of the search field: the names of the searched attributes. */
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

const PAGE_SIZE = 100

/** Returns the page that the address names, as input of a list operation. */
export function usePaging(size = PAGE_SIZE) {
  const { filters } = useRoute()
  return { size, page: Number(filters.page ?? 1) }
}

/** Reads the row that the address names, because it may be on another page of the list. */
export function useNamed<R>(operation: 'app list' | 'proxy list' | 'reactor list'): R | undefined {
  const { id = '-' } = useRoute()
  const { result } = useAsked(operation, { id: [id], size: 1 })
  return result?.data[0] as R | undefined
}

/** `of`: the number of pages. */
export function Pages({ of }: { of: number }) {
  const route = useRoute()
  const page = Number(route.filters.page ?? 1)
  const turn = (to: number) => () =>
    go(linkTo(route.screen, undefined, { ...route.filters, page: String(to) }))
  if (of < 2) return null
  return (
    <nav class="row" aria-label="Pages">
      <Button text="Newer" disabled={page <= 1} act={turn(page - 1)} />
      Page {page} of {of}
      <Button text="Older" disabled={page >= of} act={turn(page + 1)} />
    </nav>
  )
}

interface FilterProps {
  name: string
  label?: string
  /** The text of the choice that turns the filter off. */
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
  head?: ComponentChildren
  kind?: string
  children: ComponentChildren
}

export function Detail({ title, method, head, kind = 'stack', children }: DetailProps) {
  const { screen, id, filters } = useRoute()
  const { act, error } = useAction()
  // `Page` sets a title with the id in a layout effect. An ordinary effect runs later, so this title replaces it.
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

export function Missing({ thing, id, why }: { thing: string; id: string; why?: string }) {
  const { session, news } = useLive()
  const others = [session.tenants.length > 1 && 'tenant', (news?.forks ?? []).length > 0 && 'fork']
  const elsewhere = others.filter(Boolean).join(' or ')
  return (
    <Detail title={`There is no ${thing} ${id}`}>
      <p>{why ?? `It may have been deleted${elsewhere && `, or it may be in another ${elsewhere}`}.`}</p>
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
  /** The noun for a row. */
  thing: string
  asked: Asked<{
    data: readonly R[]
    pagination?: { total_items?: number; total_pages?: number; next?: string }
  }>
  /** The row that the address names, if another page of the list contains it. */
  named?: R | undefined
  textOf(row: R): string
  item(row: R): ComponentChildren
  detail: FunctionComponent<{ of: R }>
  groupOf?(row: R): string
  itemClass?: string
  /** Title, text and command for an empty list. */
  empty?: [string, string, string]
}

export function ItemScreen<R extends { id: string }>(given: ItemsOf<R>) {
  const { thing, asked, named, textOf, item, detail: Shown, groupOf, itemClass, empty, ...bar } = given
  const route = useRoute()
  const all = asked.result?.data
  const rows = (all ?? []).filter((row) => fits(route, textOf(row)))
  const listed = useChosen(rows, ({ id }) => id, route.id)
  const chosen = listed ?? (route.id !== undefined && route.id === named?.id ? named : undefined)
  const [title, text, command] = empty ?? []
  const nothing = title && <Empty {...{ title, text, command }}>{bar.actions}</Empty>
  const none = all && (all.length === 0 ? nothing : <NoneFits thing={thing} />)
  const linkOf = ({ id }: R) => linkTo(route.screen, id, route.filters)
  const { total_items = 0, total_pages = 1 } = asked.result?.pagination ?? {}
  const isCut = all !== undefined && total_items > all.length
  const cut = isCut && (
    <span class="dim small" key="cut">
      {all.length} of {total_items}, newest first. The search finds what is on this page.
    </span>
  )
  return (
    <Screen
      {...bar}
      filters={[bar.filters, <Pages key="pages" of={total_pages} />, cut]}
      error={asked.error}
      kind="split reader"
    >
      <Items {...{ rows, chosen, linkOf, groupOf, itemClass }} empty={none}>
        {item}
      </Items>
      {chosen && <Shown key={chosen.id} of={chosen} />}
      {!chosen && route.id !== undefined && all && (
        <Missing
          thing={thing}
          id={route.id}
          {...(total_pages > 1 && {
            why: 'It may have been deleted, or it may be on another page of the list.',
          })}
        />
      )}
    </Screen>
  )
}
