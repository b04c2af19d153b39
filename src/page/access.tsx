/** The screen "Who sees what": what each application sees in each container. */
import { type ComponentChildren, render } from 'preact'
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { describeSeen } from '../domain/access/cell-text.js'
import type { ResultOf } from '../operations/all.js'
import { useEvent, useLive, useRead, useRoute } from './api.js'
import { Button } from './forms.js'
import { Empty, NoneFits, Seen } from './parts.js'
import { linkTo } from './route.js'
import { Filter, Pages, Screen } from './screen.js'
import { countOf, formatTime } from './text.js'

export type Matrix = ResultOf<'access matrix'>
type Row = Matrix['applications'][number]
type Container = Matrix['containers'][number]
export type SeenCell = Row['cells'][number]

const TITLE = 'Who sees what'
const PERMISSIONS = {
  'token:use': 'Passes to code: token:use',
  'reactor:invoke': 'Passes to reactors: reactor:invoke',
  'proxy:invoke': 'Passes to proxies: proxy:invoke',
}
const PAGE_SIZE = 100
/** A printed page has room for this number of containers. */
const PRINTED_COLUMNS = 6

export function AccessMatrix() {
  const route = useRoute()
  const { filters } = route
  const { permission = 'token:read', page = '1' } = filters
  const input = { permission, page: Number(page) }
  const { result, error } = useRead(JSON.stringify(input), ({ read }) => read('access matrix', input))
  const shown = useMemo(() => result && choose(result, filters.find), [result, filters.find])
  return (
    <Screen
      find="Application, /container/"
      error={error}
      kind="page access"
      filters={[
        <Filter
          key="permission"
          name="permission"
          label="Permission"
          any="Reads: token:read"
          of={PERMISSIONS}
        />,
        <Pages key="pages" of={Math.ceil((result?.total_applications ?? 0) / PAGE_SIZE)} />,
      ]}
      actions={<Button text="Print" act={() => print()} disabled={shown === undefined} />}
    >
      {shown === undefined ? (
        <p class="dim" role="status">
          Loading …
        </p>
      ) : (
        <Found of={shown} isEmpty={result?.total_applications === 0} />
      )}
    </Screen>
  )
}

function Found({ of, isEmpty }: { of: Matrix; isEmpty: boolean }) {
  const printed = usePrinted(of)
  if (isEmpty)
    return (
      <Empty
        title="No application yet"
        text="An application has a key, and rules for what the key may do."
        command="coffer serve --starter-apps"
      />
    )
  if (of.applications.length === 0 || of.containers.length === 0)
    return <NoneFits thing="application or container" />
  return (
    <>
      <div class="stack on-screen">
        <About of={of} />
        <Grid of={of} />
      </div>
      {printed}
    </>
  )
}

/** Keeps the applications whose names contain `find`. If `find` begins with a slash, keeps containers instead. */
function choose(matrix: Matrix, find = ''): Matrix {
  const text = find.trim().toLowerCase()
  if (text === '') return matrix
  if (!text.startsWith('/'))
    return {
      ...matrix,
      applications: matrix.applications.filter(({ name }) => name.toLowerCase().includes(text)),
    }
  const isShown = matrix.containers.map(({ container }) => container.toLowerCase().includes(text))
  const keep = <T,>(of: readonly T[]) => of.filter((_, at) => isShown[at])
  return {
    ...matrix,
    containers: keep(matrix.containers),
    applications: matrix.applications.map((row) => ({ ...row, cells: keep(row.cells) })),
  }
}

function About({ of }: { of: Matrix }) {
  const { applications, containers, total_applications, total_containers } = of
  const cuts = [
    total_applications > applications.length &&
      `${applications.length} of ${countOf(total_applications, 'application')}`,
    total_containers > containers.length &&
      `${containers.length} of ${countOf(total_containers, 'container')}`,
  ].filter(Boolean)
  return (
    <div class="about">
      <p>
        <b>Every value is an example:</b> made-up data, with the mask of the newest token in the container.
        Values of stored tokens are never shown. A token in several containers is shown by the strictest
        decision.
        {cuts.length > 0 && ` Shown: ${cuts.join(', ')}.`}
      </p>
      <dl class="legend">
        {LEGEND.map(([sees, text]) => (
          <div key={sees}>
            <dt>
              <Seen sees={sees} />
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </div>
  )
}

const LEGEND: [SeenCell['sees'], string][] = [
  ['plain', 'the whole value'],
  ['masked', 'what the mask of the token shows'],
  ['redacted', 'the token, without its data'],
  ['none', 'the request is refused'],
]

export function SeenValue({ cell, mask }: { cell: SeenCell; mask: Container['mask'] }) {
  const value = describeSeen(cell, mask)
  return (
    <>
      <Seen sees={cell.sees} />
      {value !== undefined && [
        ' ',
        <bdi key="value" class={cell.example === undefined ? 'value dim' : 'value mono'}>
          {value}
        </bdi>,
      ]}
    </>
  )
}

export function describeBy({ by, rule, description }: SeenCell): string {
  if (by === 'rule') return `Rule ${rule}${description ? `: ${description}` : ''}`
  return {
    permissions: 'Its permissions for all containers',
    nothing: 'No rule and no permission grants it',
    expiry: 'The application has expired',
  }[by]
}

/**
 * The filter `rule` contains the id of the application, because rules of other applications have the same priorities.
 */
const linkToRule = ({ id }: Row, { rule, container }: SeenCell) =>
  linkTo('applications', id, rule === undefined ? {} : { rule: `${id}.${rule}`, container })

interface TableProps {
  of: Matrix
  /** `to`: the first container that is not shown. */
  from?: number
  to?: number
  caption: ComponentChildren
}

function CellTable({
  of: { applications, containers },
  from = 0,
  to = containers.length,
  caption,
}: TableProps) {
  return (
    <table>
      <caption>{caption}</caption>
      <thead>
        <tr>
          <th scope="col">Application</th>
          {containers.slice(from, to).map(({ container, type, is_used }) => (
            <th key={container} scope="col" title={is_used ? undefined : 'No token is in this container.'}>
              <code>{container}</code>
              <span class="dim">
                {type}
                {!is_used && ', unused'}
              </span>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {applications.map((row) => (
          <tr key={row.id}>
            <th scope="row">
              <a href={linkTo('applications', row.id)} tabIndex={-1}>
                <bdi>{row.name}</bdi>
              </a>
              <span class="dim">{describeRow(row)}</span>
            </th>
            {row.cells.slice(from, to).map((cell, at) => (
              <td key={cell.container}>
                <a href={linkToRule(row, cell)} title={describeBy(cell)} tabIndex={-1}>
                  <SeenValue cell={cell} mask={containers[from + at]!.mask} />
                </a>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function describeRow({ type, keys, is_expired }: Row): string {
  const state = is_expired ? 'expired' : keys === 0 && 'no key'
  return state ? `${type}, ${state}` : type
}

const MOVES: Record<string, [down: number, right: number]> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
}

/**
 * The cells are links, and a matrix may have thousands of cells. Therefore Tab reaches only one link, and arrow keys
 * move between links.
 */
function Grid({ of }: { of: Matrix }) {
  const box = useRef<HTMLDivElement>(null)
  const rows = () => [...box.current!.querySelectorAll('tbody tr')]
  const enter = (link: HTMLElement) => {
    for (const other of box.current!.querySelectorAll('a[tabindex="0"]')) other.setAttribute('tabindex', '-1')
    link.setAttribute('tabindex', '0')
  }
  useLayoutEffect(() => {
    const first = box.current!.querySelector<HTMLElement>('tbody a')
    if (first !== null && box.current!.querySelector('a[tabindex="0"]') === null) enter(first)
  })
  const move = (event: KeyboardEvent) => {
    const link = linkIn(box.current, event.target)
    const by = MOVES[event.key]
    if (link === null || by === undefined || event.ctrlKey || event.metaKey || event.altKey) return
    event.preventDefault()
    const all = rows()
    const row = link.closest('tr')!
    const column = [...row.querySelectorAll('a')].indexOf(link as HTMLAnchorElement)
    const next = all[all.indexOf(row) + by[0]]?.querySelectorAll<HTMLElement>('a')[column + by[1]]
    if (next === undefined) return
    enter(next)
    next.focus()
  }
  useEvent('keydown', move)
  useEvent('focusin', ({ target }: FocusEvent) => {
    const link = linkIn(box.current, target)
    if (link !== null) enter(link)
  })
  const table = useMemo(
    () => (
      <CellTable
        of={of}
        caption={
          <span class="only-screen-reader">
            {TITLE}: what each application gets with {of.permission}, as example values. Arrow keys move from
            cell to cell. The link of a cell leads to the rule that decides.
          </span>
        }
      />
    ),
    [of],
  )
  return (
    <div class="matrix" ref={box}>
      {table}
    </div>
  )
}

function linkIn(box: Element | null, target: EventTarget | null): HTMLElement | null {
  const isIn = target instanceof Element && box?.contains(target) === true
  return isIn ? target.closest<HTMLElement>('tbody a') : null
}

/**
 * Draws tables for A4 in landscape when printing begins. A change of state would be drawn too late, after the browser
 * has laid out the pages. `render` draws immediately.
 */
function usePrinted(of: Matrix): ComponentChildren {
  const { session, place } = useLive()
  const box = useRef<HTMLDivElement>(null)
  const vault = place.fork === undefined ? `Vault ${session.place}` : `Fork ${place.fork}`
  useEvent('beforeprint', () => box.current && render(<Printed of={of} vault={vault} />, box.current))
  useEvent('afterprint', () => box.current && render(null, box.current))
  return <div class="printed" ref={box} />
}

function Printed({ of, vault }: { of: Matrix; vault: string }) {
  const { containers, permission, at } = of
  const starts = containers.map((_, start) => start).filter((start) => start % PRINTED_COLUMNS === 0)
  return (
    <>
      <h2>{TITLE}</h2>
      <p>
        {vault}, tenant {of.tenant.name} · {formatTime(at)} UTC · permission <code>{permission}</code>
      </p>
      <About of={of} />
      {starts.map((from) => (
        <CellTable
          key={from}
          of={of}
          from={from}
          to={from + PRINTED_COLUMNS}
          caption={
            starts.length > 1 &&
            `Containers ${from + 1} to ${Math.min(from + PRINTED_COLUMNS, containers.length)} of ${containers.length}`
          }
        />
      ))}
    </>
  )
}
