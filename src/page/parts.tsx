import type { ComponentChildren } from 'preact'
import { useEffect, useId, useState } from 'preact/hooks'
import { useLive, useNameOf } from './api.js'
import { Button } from './forms.js'
import { linkTo } from './route.js'
import { type Call, LANGUAGES } from './samples.js'

type Children = { children?: ComponentChildren }

export function Copy({
  text,
  label = 'Copy',
  of,
  ...rest
}: {
  text: string
  label?: string
  of?: string
  class?: string
}) {
  const [isDone, setDone] = useState(false)
  useEffect(() => {
    const timer = isDone ? setTimeout(() => setDone(false), 2000) : undefined
    return () => clearTimeout(timer)
  }, [isDone])
  const copy = () => navigator.clipboard.writeText(text).then(() => setDone(true))
  const name = of === undefined ? {} : { 'aria-label': `${label}: ${of}` }
  return <Button {...rest} {...name} text={isDone ? 'Copied' : label} act={copy} />
}

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

export function Seeing({ transform }: { transform: string | undefined }) {
  if (transform === undefined) return <span class="dim">no</span>
  const words: Record<string, string> = { reveal: 'revealed', mask: 'masked', redact: 'redacted' }
  return <Badge kind={transform === 'reveal' ? 'warn' : ''}>{words[transform]}</Badge>
}

/** Rows of a name and what is to say of it; what is undefined is left out. */
export function Facts({ of }: { of: Record<string, ComponentChildren> }) {
  return (
    <dl class="facts">
      {Object.entries(of).map(
        ([name, value]) =>
          value !== undefined && [<dt key={`${name}?`}>{name}</dt>, <dd key={name}>{value}</dd>],
      )}
    </dl>
  )
}

/** `right`: the columns from which on cells are numbers or buttons. */
export function Table({
  head,
  rows,
  right = head.length,
}: {
  head: string[]
  rows: ComponentChildren[][]
  right?: number
}) {
  const kind = (at: number) => (at >= right ? 'number' : undefined)
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard.
    <div class="scroll" tabIndex={0}>
      <table class="plain">
        <thead>
          <tr>
            {head.map((name, at) => (
              <th key={name} scope="col" class={kind(at)}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, row) => (
            <tr key={row}>
              {cells.map((cell, at) => (
                <td key={at} class={kind(at)}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** Shows the chosen row. `back`: the list, for a narrow window. */
export function Detail({
  back,
  head,
  kind = 'stack',
  children,
}: Children & { back: string; head: ComponentChildren; kind?: string }) {
  return (
    <article class={`detail ${kind}`} aria-label="Detail">
      <div class="head">
        <a class="button back" href={back}>
          Back
        </a>
        {head}
      </div>
      {children}
    </article>
  )
}

export function Note({ kind, title, children }: Children & { kind: string; title: ComponentChildren }) {
  return (
    <div class={`note ${kind}`}>
      <h2>{title}</h2>
      {children}
    </div>
  )
}

export function Empty({ title, children }: Children & { title: string }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  )
}

export const NoneFits = ({ thing }: { thing: string }) => (
  <Empty title={`No ${thing} fits`}>Clear the filters, or look in another fork.</Empty>
)

export const Terminal = ({ text }: { text: string }) => <Code label="Terminal" text={text} isCopied />

type CodeProps = Children & { label: string; text: string; isCopied?: boolean }

export function Code({ label, text, isCopied = false, children = text }: CodeProps) {
  return (
    <figure class="code">
      <figcaption>
        {label}
        {isCopied && <Copy class="quiet push" text={text} of={label} />}
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard. */}
      <pre tabIndex={0}>{children}</pre>
    </figure>
  )
}

export const formatJson = (value: unknown) =>
  typeof value === 'string' ? value : JSON.stringify(value, undefined, 2)

const MARKED = /("(?:[^"\\]|\\.)*"(?=:)|"\((?:object|string|number|boolean|array of \d+|\d+ characters)\)")/

/** JSON whose names are dim, and in which the places of what was left out are marked. */
export function Json({
  label,
  value,
  isCopied = false,
}: {
  label: string
  value: unknown
  isCopied?: boolean
}) {
  const text = formatJson(value)
  const parts = text.split(MARKED).map((part, at) => {
    if (at % 2 === 0) return part
    return part.startsWith('"(') ? <i key={at}>{part.slice(1, -1)}</i> : <b key={at}>{part}</b>
  })
  return (
    <Code label={label} text={text} isCopied={isCopied}>
      {parts}
    </Code>
  )
}

/** Tabs by their names, and what makes the panel of each. */
export function Tabs({ label, tabs }: { label: string; tabs: Record<string, () => ComponentChildren> }) {
  const [chosen, setChosen] = useState('')
  const id = useId()
  const names = Object.keys(tabs)
  const current = names.includes(chosen) ? chosen : names[0]!
  const turn = (event: KeyboardEvent & { currentTarget: HTMLElement }) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (by === undefined) return
    const next = (names.indexOf(current) + by + names.length) % names.length
    setChosen(names[next]!)
    event.currentTarget.querySelectorAll('button')[next]?.focus()
  }
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} onKeyDown={turn}>
        {names.map((name) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${id}-${names.indexOf(name)}`}
            aria-controls={id}
            aria-selected={name === current}
            tabIndex={name === current ? 0 : -1}
            onClick={() => setChosen(name)}
          >
            {name}
          </button>
        ))}
      </div>
      <div class="stack" role="tabpanel" id={id} aria-labelledby={`${id}-${names.indexOf(current)}`}>
        {tabs[current]!()}
      </div>
    </>
  )
}

export function CodeTabs({ call }: { call: Call }) {
  const entries = Object.entries(LANGUAGES).map(([name, write]) => {
    const label = `${name} · the key comes from your environment`
    return [name, () => <Code label={label} text={write(call)} isCopied />] as const
  })
  return <Tabs label="Language" tabs={Object.fromEntries(entries)} />
}

export function ApplicationLink({ id }: { id: string | undefined }) {
  const name = useNameOf()(id)
  return id === undefined ? name : <a href={linkTo('applications', id)}>{name}</a>
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
] as const

/** `2 min`, without a direction. */
export function formatSpan(ms: number): string {
  const [unit, length] = UNITS.find(([, each]) => Math.abs(ms) >= each) ?? ['s', 1000]
  return `${Math.floor(Math.abs(ms) / length)} ${unit}`
}

/** `2026-11-23 06:41:07 UTC` */
export const formatTime = (date: string) => date.replace(/^(.{10})T(.{8}).*$/, '$1 $2 UTC')

/** A date of the vault and how long ago it is, by the clock of the vault. */
export function Time({ of }: { of: string | undefined }) {
  const { news } = useLive()
  if (of === undefined) return <>never</>
  const ms = (news?.now ?? Date.parse(of)) - Date.parse(of)
  return (
    <>
      <time dateTime={of}>{formatTime(of)}</time>{' '}
      <span class="dim">· {ms >= 0 ? `${formatSpan(ms)} ago` : `in ${formatSpan(ms)}`}</span>
    </>
  )
}
