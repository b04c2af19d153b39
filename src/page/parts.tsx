import type { ComponentChildren } from 'preact'
import { SEEN_WORDS } from '../domain/access/cell-text.js'
import { useRoute } from './api.js'
import { Button } from './forms.js'
import { linkTo } from './route.js'
import { Terminal } from './text.js'

type Children = { children?: ComponentChildren }

export const Badge = ({ kind = '', children }: Children & { kind?: string }) => (
  <span class={`badge ${kind}`}>{children}</span>
)

export function Status({ status }: { status: number }) {
  const kind = status === 0 || status >= 500 ? 'bad' : status >= 400 ? 'warn' : 'good'
  return <Badge kind={`status ${kind}`}>{status || 'none'}</Badge>
}

export const Method = ({ name }: { name: string }) => (
  <b class={`badge method ${name.toLowerCase()}`}>{name}</b>
)

type Sees = keyof typeof SEEN_WORDS
const SEEN_KINDS: Record<Sees, string> = { plain: 'warn', masked: 'info', redacted: '', none: 'none' }

/** The word and the colour are the same on all screens. */
export const Seen = ({ sees }: { sees: Sees }) => <Badge kind={SEEN_KINDS[sees]}>{SEEN_WORDS[sees]}</Badge>

const SEEN: Record<string, Sees> = { reveal: 'plain', mask: 'masked', redact: 'redacted' }

export function Seeing({ transform }: { transform: string | undefined }) {
  const sees = SEEN[transform ?? '']
  return sees === undefined ? <span class="dim">no</span> : <Seen sees={sees} />
}

export function Facts({ of }: { of: Record<string, ComponentChildren> }) {
  const rows = Object.entries(of).filter(([, value]) => value !== undefined)
  return (
    <dl class="facts">
      {rows.map(([name, value]) => [<dt key={`${name}?`}>{name}</dt>, <dd key={name}>{value}</dd>])}
    </dl>
  )
}

/** The cell with the class `link` contains the link of the row. */
export type Column<R> = [head: string, kind: string, cell: (row: R, at: number) => ComponentChildren]

export const Heads = <R,>({ columns }: { columns: Column<R>[] }) => (
  <thead>
    <tr>
      {columns.map(([head, kind]) => (
        <th key={head} scope="col" class={kind}>
          {head}
        </th>
      ))}
    </tr>
  </thead>
)

type CellsProps<R> = { columns: Column<R>[]; row: R; at: number; link?: object }

export const Cells = <R,>({ columns, row, at, link }: CellsProps<R>) =>
  columns.map(([head, kind, cell]) => (
    <td key={head} class={kind}>
      {kind.includes('link') ? <a {...link}>{cell(row, at)}</a> : cell(row, at)}
    </td>
  ))

/** Only screen readers read `of`, after `text`. */
type Action = [text: string, of: string, act: () => unknown, kind?: string]

interface TableProps<R> {
  rows: readonly R[]
  columns: Column<R>[]
  actions?(row: R, at: number): (Action | false)[]
}

export function Table<R>({ rows, columns: plain, actions }: TableProps<R>) {
  if (rows.length === 0) return null
  const buttons = (row: R, at: number) => (
    <span class="row end">
      {actions!(row, at).map(
        (each) => each && <Button key={each[0]} text={each[0]} of={each[1]} act={each[2]} class={each[3]} />,
      )}
    </span>
  )
  const columns: Column<R>[] = actions ? [...plain, ['Actions', 'number', buttons]] : plain
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard.
    <div class="scroll" tabIndex={0}>
      <table class={`plain ${actions ? 'acts' : ''}`}>
        <Heads columns={columns} />
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              <Cells {...{ columns, row, at }} />
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

type NoteProps = Children & { kind?: string; title: string }

export const Note = ({ kind = 'bad', title, children }: NoteProps) => (
  <div class={`note ${kind}`}>
    <h3 class="title">{title}</h3>
    <div>{children}</div>
  </div>
)

type EmptyProps = Children & { title: string; text?: ComponentChildren; command?: string | undefined }

export const Empty = ({ title, text, command, children }: EmptyProps) => (
  <div class="empty">
    <h2>{title}</h2>
    {text && <p>{text}</p>}
    {command && <Terminal text={command} />}
    {children}
  </div>
)

/** Tells screen readers that the page is loading, and draws gray lines. */
export const Loading = ({ isOn }: { isOn: boolean }) => (
  <div class={isOn ? 'skeleton' : ''}>
    <p class="only-screen-reader" role="status">
      {isOn && 'Loading …'}
    </p>
    {isOn &&
      [60, 45, 70, 50, 65, 40].map((width) => (
        <span key={width} aria-hidden="true" style={{ width: `${width}%` }} />
      ))}
  </div>
)

export function NoneFits({ thing }: { thing: string }) {
  const { screen, filters } = useRoute()
  const title = filters.find ? `No ${thing} matches “${filters.find}”` : `No ${thing} matches the filters`
  return (
    <Empty title={title}>
      <a class="button" href={linkTo(screen)}>
        Reset filters
      </a>
    </Empty>
  )
}
