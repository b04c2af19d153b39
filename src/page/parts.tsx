/** Components that several views of the page use. */
import type { ButtonHTMLAttributes, ComponentChildren, FormHTMLAttributes, InputHTMLAttributes } from 'preact'
import { useState } from 'preact/hooks'
import type { Asked } from './api.js'

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

/** `again` reloads the content below. */
export function Heading(given: { text: string; again?: () => void; children?: ComponentChildren }) {
  const { text, again, children } = given
  return (
    <div class="heading">
      <h1>{text}</h1>
      {children}
      {again !== undefined && <Button text="Refresh" act={again} />}
    </div>
  )
}

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement>
type FormProps = FormHTMLAttributes<HTMLFormElement>

export function Button({ text, act, ...rest }: ButtonProps & { text: string; act(): unknown }) {
  return (
    <button type="button" {...rest} onClick={act}>
      {text}
    </button>
  )
}

export type Fields = Record<string, string>

/** Sends the fields that are not empty. */
export function Form({ send, ...rest }: FormProps & { send(fields: Fields): void }) {
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

/** {@link Shown} of a page of a list, with buttons for the others. */
export function Paged<T extends { pagination: { total_pages: number } }>(given: {
  of: Asked<T>
  page: number
  turn(page: number): void
  children: (result: T) => ComponentChildren
}) {
  const { of, page, turn, children } = given
  const pages = of.result?.pagination.total_pages ?? 0
  return (
    <Shown of={of}>
      {(result) => (
        <>
          {children(result)}
          {pages > 1 && (
            <nav aria-label="Pages">
              <Button text="Newer" disabled={page <= 1} act={() => turn(page - 1)} />
              <span>
                Page {page} of {pages}
              </span>
              <Button text="Older" disabled={page >= pages} act={() => turn(page + 1)} />
            </nav>
          )}
        </>
      )}
    </Shown>
  )
}

/** Details whose content is made when they are opened; `about` is the second line of their summary. */
export function Details(
  given: Record<'title' | 'about', ComponentChildren> & { children: () => ComponentChildren },
) {
  const { title, about, children } = given
  const [isOpen, setOpen] = useState(false)
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {title}
        <br />
        <span class="dim">{about}</span>
      </summary>
      {isOpen && children()}
    </details>
  )
}

export const spell = (value: unknown) =>
  typeof value === 'string' ? value : JSON.stringify(value, undefined, 2)

export const time = (date: string) => date.replace(/^(.{10})T(.{8}).*$/, '$1 $2')

const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** A command line for the request. The key is a variable, so that no shell history has it. */
export function curl(
  method: string,
  path: string,
  header: string,
  body?: string,
  type = 'application/json',
): string {
  const lines = [
    `curl ${method === 'GET' ? '' : `-X ${method} `}${quote(location.origin + path)}`,
    `-H "${header}: $KEY"`,
    ...(body === undefined ? [] : [`-H 'Content-Type: ${type}'`, `-d ${quote(body)}`]),
  ]
  return lines.join(' \\\n  ')
}
