/** A screen: a bar over a list beside its detail. */
import type { ComponentChildren } from 'preact'
import { Choose, Failure } from './forms.js'
import { NoneFits } from './parts.js'
import { linkTo, type Route, setFilter } from './route.js'
import { Items, useChosen } from './rows.js'

interface Bar {
  title: string
  route: Route
  /** Shown in an empty search field. */
  placeholder?: string
  filters?: ComponentChildren
  actions?: ComponentChildren
  /** Why something failed. */
  error?: string | undefined
}

export function Screen({
  title,
  route,
  placeholder,
  filters,
  actions,
  error,
  kind = 'split',
  children,
}: Bar & { kind?: string; children: ComponentChildren }) {
  return (
    <section class="screen" aria-labelledby="title">
      <div class="bar">
        <h1 id="title">{title}</h1>
        {placeholder && (
          <input
            type="search"
            aria-label={`Find in ${title}`}
            placeholder={`${placeholder}  /`}
            value={route.filters.find ?? ''}
            onInput={(event) => setFilter(route, 'find', event.currentTarget.value)}
          />
        )}
        {filters}
        {actions && <span class="push row">{actions}</span>}
      </div>
      <Failure text={error} />
      <div class={kind} data-open={route.id === undefined ? undefined : ''}>
        {children}
      </div>
    </section>
  )
}

/** A filter that is in the address. `any`: the words for none. */
export function Filter({
  route,
  name,
  any,
  of,
}: {
  route: Route
  name: string
  any: string
  of: readonly string[]
}) {
  const words = Object.fromEntries([...new Set(of)].map((word) => [word, word]))
  return (
    <Choose
      label={name}
      of={{ '': any, ...words }}
      value={route.filters[name] ?? ''}
      choose={(value) => setFilter(route, name, value)}
    />
  )
}

export const fits = ({ filters: { find = '' } }: Route, text: string) =>
  text.toLowerCase().includes(find.toLowerCase())

interface ItemsOf<R> {
  screen: string
  thing: string
  all: readonly R[] | undefined
  /** Returns the text of a row that the search reads. */
  textOf(row: R): string
  item(row: R): ComponentChildren
  detail(row: R): ComponentChildren
  groupOf?(row: R): string
  empty?: ComponentChildren
  /** A dialog. */
  children?: ComponentChildren
}

/** A screen of things to read. */
export function ItemScreen<R extends { id: string }>({
  screen,
  thing,
  all,
  textOf,
  item,
  detail,
  groupOf,
  empty,
  children,
  ...bar
}: ItemsOf<R> & Bar) {
  const { route } = bar
  const rows = (all ?? []).filter((row) => fits(route, textOf(row)))
  const chosen = useChosen(rows, ({ id }) => id, route.id)
  const none = all && (all.length === 0 ? empty : <NoneFits thing={thing} />)
  return (
    <Screen {...bar} kind="split reader">
      <Items
        rows={rows}
        chosen={chosen}
        linkOf={({ id }) => linkTo(screen, id, route.filters)}
        groupOf={groupOf}
        empty={none}
      >
        {item}
      </Items>
      {chosen && detail(chosen)}
      {children}
    </Screen>
  )
}
