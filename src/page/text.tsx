import type { ComponentChildren } from 'preact'
import { divideRefusal } from '../domain/allow-net-advice.js'
import { useLive, useNameOf } from './api.js'
import { Choose, Copy } from './forms.js'
import { useKept } from './kept.js'
import { linkTo, linkToRequest } from './route.js'
import { type Call, describeKeys, LANGUAGES } from './samples.js'

export const Terminal = ({ text }: { text: string }) => <Code label="Terminal" text={text} isCopied />

/** Shows why an address is refused. A person can copy the option that permits the address. */
export function Refusal({ text }: { text: string }) {
  const { reason, option } = divideRefusal(text)
  return (
    <>
      <p>{reason}</p>
      {option && (
        <>
          <p>To allow it, restart Coffer with this option:</p>
          <Code label="Option" text={option} kind="one-line" isCopied />
        </>
      )}
    </>
  )
}

type Labelled = { label: string; isCopied?: boolean }
/** `line`: the marked line, from 1. `tool`: a control above the code. */
type CodeProps = Labelled & {
  text: string
  line?: number | undefined
  tool?: ComponentChildren
  kind?: string
  children?: ComponentChildren
}

export function Code({
  label,
  text,
  line,
  tool,
  kind = '',
  isCopied,
  children = markLine(text, line),
}: CodeProps) {
  return (
    <figure class={`code ${kind}`}>
      <figcaption>
        {tool}
        {label}
        {isCopied && <Copy class="quiet push" text={text} of={`: ${label}`} />}
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard. */}
      <pre tabIndex={0}>{children}</pre>
    </figure>
  )
}

function markLine(text: string, line: number | undefined): ComponentChildren {
  if (line === undefined) return text
  const lines = text.split('\n')
  const join = (some: string[]) => some.map((each) => `${each}\n`).join('')
  return [
    join(lines.slice(0, line - 1)),
    <mark key="line">{lines[line - 1]}</mark>,
    '\n',
    join(lines.slice(line)),
  ]
}

export const formatJson = (value: unknown) =>
  typeof value === 'string' ? value : JSON.stringify(value, undefined, 2)

const MARKED = /("(?:[^"\\]|\\.)*"(?=:)|"\((?:object|string|number|boolean|array of \d+|\d+ characters?)\)")/

export function Json({ value, ...rest }: Labelled & { value: unknown }) {
  const text = formatJson(value)
  const parts = text.split(MARKED).map((part, at) => {
    if (at % 2 === 0) return part
    return part.startsWith('"(') ? <i key={at}>{part.slice(1, -1)}</i> : <b key={at}>{part}</b>
  })
  return <Code text={text} children={parts} {...rest} />
}

/** The person's last choice of language is stored. */
export function CodeTabs({ call }: { call: Call }) {
  const [kept, keep] = useKept('language', 'curl')
  const written = Object.entries(LANGUAGES).flatMap(([name, write]) => {
    const text = write({ ...call, origin: location.origin })
    return text === undefined ? [] : [[name, text] as const]
  })
  const [language, text] = written.find(([name]) => name === kept) ?? written[0]!
  return (
    <Code
      label={describeKeys(call)}
      tool={<Choose label="Language" of={written.map(([name]) => name)} value={language} choose={keep} />}
      text={text}
      isCopied
    />
  )
}

export function ApplicationLink({ id }: { id: string | undefined }) {
  const name = useNameOf()(id)
  return id === undefined ? name : <a href={linkTo('applications', id)}>{name}</a>
}

export const RequestLink = ({ of, text = of.slice(0, 8) }: { of: string; text?: string }) => (
  <a class="mono" href={linkToRequest(of)}>
    {text}
  </a>
)

/** For example `2 requests`. `thing` must have a regular plural. */
export const countOf = (count: number, thing: string) => `${count} ${thing}${count === 1 ? '' : 's'}`

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
] as const

/** For example `2 min`. The sign is left out. */
export function formatSpan(ms: number): string {
  const [unit, length] = UNITS.find(([, each]) => Math.abs(ms) >= each) ?? ['s', 1000]
  return `${Math.floor(Math.abs(ms) / length)} ${unit}`
}

/** For example `2026-11-23 06:41:07`. With length 23, includes milliseconds. */
export const formatTime = (date: string, length = 19) => date.slice(0, length).replace('T', ' ')

/** Shows a date, and the time since then by the vault's clock. `by`: the id of the actor. */
export function Time({ of, by }: { of: string | undefined; by?: string | undefined }) {
  const { news } = useLive()
  const nameOf = useNameOf()
  if (of === undefined) return <>never</>
  const ms = (news?.now ?? Date.parse(of)) - Date.parse(of)
  return (
    <>
      <time dateTime={of}>{formatTime(of)} UTC</time>{' '}
      <span class="dim">· {ms >= 0 ? `${formatSpan(ms)} ago` : `in ${formatSpan(ms)}`}</span>
      {by && ` by ${nameOf(by)}`}
    </>
  )
}
