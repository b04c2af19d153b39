import type { ComponentChildren, RefObject } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { useKeys } from './frame.js'
import { Cells, type Column, Heads, Loading } from './parts.js'
import { go } from './route.js'

interface Listed<R> {
  rows: readonly R[]
  chosen?: R | undefined
  linkOf(row: R): string
}

const EXTRA = 20
const STEP = 10

type Box = RefObject<HTMLDivElement | null>

/** `reveal` draws a row that is not in view. */
function useMoves<R>(list: Box, { rows, chosen, linkOf }: Listed<R>, reveal: (at: number) => void): void {
  /** The link of the row that a key press has chosen, until the page shows this row as chosen. */
  const moved = useRef<string>(undefined)
  const current = chosen && linkOf(chosen)
  const move = (by: number) => {
    const from = moved.current ?? current
    const at = rows.findIndex((row) => linkOf(row) === from)
    const next = Math.max(0, Math.min(rows.length - 1, at + by))
    if (rows[next] === undefined) return
    moved.current = linkOf(rows[next])
    reveal(next)
    go(moved.current, true)
  }
  useKeys({ j: () => move(1), k: () => move(-1) })
  useEffect(() => {
    if (moved.current === undefined || moved.current !== current) return
    const link = list.current!.querySelector<HTMLElement>('[aria-current]')
    if (link === null) return
    moved.current = undefined
    link.focus()
    link.scrollIntoView({ block: 'nearest' })
  })
}

/** In a narrow window, the document scrolls instead of the list. */
function scrollerOf(list: HTMLElement): Element {
  return list.scrollHeight > list.clientHeight ? list : document.scrollingElement!
}

/** Draws the rows in view, and EXTRA rows above and below. Calls `atTop` when the first row is in view. */
function useView(list: Box, isEmpty: boolean, atTop: () => void) {
  const height = useRef(30)
  const [view, setView] = useState({ first: 0, count: 60 })
  const look = () => {
    // An event of the window can arrive after the list was removed.
    const box = list.current
    if (box === null) return
    height.current = box.querySelector('[aria-rowindex]')?.getBoundingClientRect().height || height.current
    const above = box.scrollTop + Math.max(0, -box.getBoundingClientRect().top)
    const first = Math.max(0, Math.floor(above / height.current / STEP) * STEP - EXTRA)
    const count = Math.ceil(innerHeight / height.current / STEP) * STEP + 2 * EXTRA
    if (above === 0) atTop()
    setView((now) => (now.first === first && now.count === count ? now : { first, count }))
  }
  useEffect(() => {
    look()
    addEventListener('scroll', look, { capture: true, passive: true })
    addEventListener('resize', look)
    return () => {
      removeEventListener('scroll', look, { capture: true })
      removeEventListener('resize', look)
    }
  }, [isEmpty])
  const reveal = (at: number) => {
    const isDrawn = at >= view.first && at < view.first + view.count
    if (!isDrawn) setView({ ...view, first: Math.max(0, at - EXTRA) })
  }
  return { ...view, height, reveal }
}

/** Counts the new rows above the view. Scrolls so that the rows in view do not move. */
function useFresh<R>(list: Box, rows: readonly R[], height: { current: number }) {
  const [fresh, setFresh] = useState(0)
  const top = useRef<R>(undefined)
  useLayoutEffect(() => {
    const added = top.current === undefined ? 0 : rows.indexOf(top.current)
    top.current = rows[0]
    const scroller = scrollerOf(list.current!)
    if (added <= 0 || scroller.scrollTop === 0) return
    scroller.scrollTop += added * height.current
    setFresh((before) => before + added)
  }, [rows])
  return [fresh, () => setFresh(0)] as const
}

/** Tab reaches only the chosen row, or the first row if no row is chosen. */
function linkProps<R>({ rows, chosen, linkOf }: Listed<R>, row: R) {
  const isChosen = row === chosen
  const isFirst = chosen === undefined && row === rows[0]
  const current = isChosen ? ('true' as const) : undefined
  return {
    href: linkOf(row),
    'data-link': true,
    'aria-current': current,
    tabIndex: isChosen || isFirst ? 0 : -1,
  }
}

type RowsProps<R> = Listed<R> & { caption: string; columns: Column<R>[]; empty: ComponentChildren }

export function Rows<R>({ caption, columns, empty, ...given }: RowsProps<R>) {
  const { rows } = given
  const list = useRef<HTMLDivElement>(null)
  const { first, count, height, reveal } = useView(list, rows.length === 0, () => forget())
  const [fresh, forget] = useFresh(list, rows, height)
  useMoves(list, given, reveal)
  const shown = rows.slice(first, first + count)
  const drawn = shown.map((row, at) => {
    const link = linkProps(given, row)
    const open = ({ target }: Event) => (target as Element).closest('a') === null && go(link.href)
    return (
      <tr key={link.href} aria-rowindex={first + at + 2} onClick={open}>
        <Cells {...{ columns, row, at, link }} />
      </tr>
    )
  })
  return (
    <div class="list" ref={list}>
      <Loading isOn={rows.length === 0 && !empty} />
      {fresh > 0 && (
        <button type="button" class="fresh primary" onClick={() => scrollerOf(list.current!).scrollTo(0, 0)}>
          {fresh} new
        </button>
      )}
      {rows.length === 0 ? (
        empty
      ) : (
        <table aria-rowcount={rows.length + 1}>
          <caption class="only-screen-reader">{caption}</caption>
          <Heads columns={columns} />
          <tbody>
            <Spacer height={first * height.current} />
            {drawn}
            <Spacer height={(rows.length - first - shown.length) * height.current} />
          </tbody>
        </table>
      )}
    </div>
  )
}

/**
 * Fills the space of rows that are not drawn. With `colspan`, a column that a narrow window hides would still take up
 * width.
 */
function Spacer({ height }: { height: number }) {
  if (height <= 0) return null
  return (
    <tr class="spacer" style={{ height: `${height}px` }}>
      <td />
    </tr>
  )
}

type ItemsProps<R> = Listed<R> & {
  children(row: R): ComponentChildren
  groupOf?: ((row: R) => string) | undefined
  itemClass?: string | undefined
  empty: ComponentChildren
}

export function Items<R>({ children, groupOf, itemClass, empty, ...given }: ItemsProps<R>) {
  const { rows, linkOf } = given
  const list = useRef<HTMLDivElement>(null)
  useMoves(list, given, () => undefined)
  const group = (at: number) => rows[at] && groupOf?.(rows[at])
  return (
    <div class="list" ref={list}>
      <Loading isOn={rows.length === 0 && !empty} />
      {rows.length === 0 && empty}
      <ul class="items" hidden={rows.length === 0}>
        {rows.map((row, at) => [
          group(at) !== group(at - 1) && (
            <li key={`${group(at)}?`}>
              <h2>{group(at)}</h2>
            </li>
          ),
          <li key={linkOf(row)}>
            <a class={itemClass} {...linkProps(given, row)}>
              {children(row)}
            </a>
          </li>,
        ])}
      </ul>
    </div>
  )
}

/**
 * Returns the row that the address names. If the address names no row, returns the first wanted row, which stays chosen
 * when other rows appear above it.
 */
export function useChosen<R>(
  rows: readonly R[],
  idOf: (row: R) => string,
  named: string | undefined,
  isWanted: (row: R) => boolean = () => true,
): R | undefined {
  const [first, setFirst] = useState<string>()
  const find = (id: string | undefined) => rows.find((row) => idOf(row) === id)
  const begin = find(first) ?? rows.find(isWanted) ?? rows[0]
  const id = begin && idOf(begin)
  useEffect(() => setFirst(id), [id])
  return named === undefined ? begin : find(named)
}
