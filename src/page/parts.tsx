import type { ButtonHTMLAttributes, ComponentChildren, FormHTMLAttributes, InputHTMLAttributes } from 'preact'
import { useState } from 'preact/hooks'
import type { OperationName, ResultOf } from '../operations/all.js'
import { type Asked, useAsked } from './api.js'

/** Waits, or says what failed, or shows `children` of the result. */
export function Shown<T>({ of, children }: { of: Asked<T>; children: (result: T) => ComponentChildren }) {
  if (of.error !== undefined) return <Fault text={of.error} />
  if (of.result === undefined) return <p class="dim">Loading …</p>
  return <>{children(of.result)}</>
}

export function Fault({ text }: { text: string }) {
  return (
    <p role="alert" class="fault">
      {text}
    </p>
  )
}

export function Status({ isFault, text }: { isFault: boolean; text: ComponentChildren }) {
  return <span class={isFault ? 'status fault' : 'status'}>{text}</span>
}

export function Heading({ text, children }: { text: string; children?: ComponentChildren }) {
  return (
    <div class="heading">
      <h1>{text}</h1>
      {children}
    </div>
  )
}

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & { text: string; act(): unknown }

export function Button({ text, act, ...rest }: ButtonProps) {
  return (
    <button type="button" {...rest} onClick={act}>
      {text}
    </button>
  )
}

export type Fields = Record<string, string>

/** Sends the fields that are not empty. */
export function Form({
  send,
  ...rest
}: FormHTMLAttributes<HTMLFormElement> & { send(fields: Fields): void }) {
  return (
    <form
      {...rest}
      onSubmit={(event) => {
        event.preventDefault()
        const fields = [...new FormData(event.currentTarget)].filter(([, value]) => value !== '')
        send(Object.fromEntries(fields) as Fields)
      }}
    />
  )
}

export function Field({ label, ...input }: InputHTMLAttributes<HTMLInputElement> & { label: string }) {
  return (
    <label>
      {label} <input {...input} />
    </label>
  )
}

export function Table({ label, head, rows }: { label: string; head: string[]; rows: ComponentChildren[][] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard.
    <section class="wide" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {head.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, row) => (
            <tr key={row}>
              {cells.map((cell, column) => (
                <td key={head[column]}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

export function Code({ label, text, isCopied = false }: { label: string; text: string; isCopied?: boolean }) {
  const [isDone, setDone] = useState(false)
  const copy = () => navigator.clipboard.writeText(text).then(() => setDone(true))
  return (
    <>
      <p class="label">
        {label}
        {isCopied && (
          <Button class="small" aria-label={`Copy: ${label}`} text={isDone ? 'Copied' : 'Copy'} act={copy} />
        )}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard. */}
      <pre tabIndex={0}>{text}</pre>
    </>
  )
}

type Listed<Name extends OperationName> = Extract<ResultOf<Name>, { data: unknown[] }>

/** A view of the operation's list, page by page; `head` is what stands beside its name. */
export function ListView<Name extends OperationName>(given: {
  text: string
  operation: Name
  input?: object
  head?: ComponentChildren
  empty?: ComponentChildren
  children: (list: Listed<Name>) => ComponentChildren
}) {
  const { text, operation, input = {}, head, empty = 'None yet.', children } = given
  const about = JSON.stringify([operation, input])
  const [turned, setTurned] = useState({ about, page: 1 })
  const page = turned.about === about ? turned.page : 1
  const found = useAsked(operation, { size: 20, ...input, page })
  const turn = (to: number) => () => setTurned({ about, page: to })
  return (
    <>
      <Heading text={text}>
        {head}
        <Button text="Refresh" act={found.again} />
      </Heading>
      <Shown of={found as Asked<unknown> as Asked<Listed<Name> & { pagination: { total_pages: number } }>}>
        {(list) => (
          <>
            {list.data.length === 0 && <p class="dim">{empty}</p>}
            {children(list)}
            {list.pagination.total_pages > 1 && (
              <nav aria-label="Pages">
                <Button text="Newer" disabled={page <= 1} act={turn(page - 1)} />
                <span>
                  Page {page} of {list.pagination.total_pages}
                </span>
                <Button text="Older" disabled={page >= list.pagination.total_pages} act={turn(page + 1)} />
              </nav>
            )}
          </>
        )}
      </Shown>
    </>
  )
}

/** Details whose content is made when they are opened; `about` is the second line of their summary. */
export function Details(
  given: Record<'title' | 'about', ComponentChildren> & { children: () => ComponentChildren },
) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {given.title}
        <br />
        <span class="dim">{given.about}</span>
      </summary>
      {isOpen && given.children()}
    </details>
  )
}

export const formatJson = (value: unknown) =>
  typeof value === 'string' ? value : JSON.stringify(value, undefined, 2)

export const time = (date: string) => date.replace(/^(.{10})T(.{8}).*$/, '$1 $2')

const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** A command line for the request. The key is a variable, so that no shell history has it. */
export function curl(method: string, path: string, header: string, body?: string, type = 'application/json') {
  return [
    `curl ${method === 'GET' ? '' : `-X ${method} `}${quote(location.origin + path)}`,
    `-H "${header}: $KEY"`,
    ...(body === undefined ? [] : [`-H 'Content-Type: ${type}'`, `-d ${quote(body)}`]),
  ].join(' \\\n  ')
}
