/** What several views of the page use. */
import type { ComponentChildren } from 'preact'
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

export function Heading({ text, children }: { text: string; children?: ComponentChildren }) {
  return (
    <div class="heading">
      <h1>{text}</h1>
      {children}
    </div>
  )
}

/** A wide table, which scrolls in itself. */
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

/** Text that is copied as it is. */
export function Code({ label, text, isCopied = false }: { label: string; text: string; isCopied?: boolean }) {
  const [isDone, setDone] = useState(false)
  const copy = () => navigator.clipboard.writeText(text).then(() => setDone(true))
  return (
    <>
      <p class="label">
        {label}
        {isCopied && (
          <button type="button" class="small" aria-label={`Copy: ${label}`} onClick={copy}>
            {isDone ? 'Copied' : 'Copy'}
          </button>
        )}
      </p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard. */}
      <pre tabIndex={0}>{text}</pre>
    </>
  )
}

export function Pager({ page, pages, turn }: { page: number; pages: number; turn(page: number): void }) {
  if (pages < 2) return null
  return (
    <nav aria-label="Pages">
      <button type="button" disabled={page <= 1} onClick={() => turn(page - 1)}>
        Newer
      </button>
      <span>
        Page {page} of {pages}
      </span>
      <button type="button" disabled={page >= pages} onClick={() => turn(page + 1)}>
        Older
      </button>
    </nav>
  )
}

/** Details whose content is made when they are opened. */
export function Details({
  summary,
  children,
}: {
  summary: ComponentChildren
  children: () => ComponentChildren
}) {
  const [isOpen, setOpen] = useState(false)
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {isOpen && children()}
    </details>
  )
}

export const spell = (value: unknown) =>
  typeof value === 'string' ? value : JSON.stringify(value, undefined, 2)

export const time = (date: string) => date.replace(/^(.{10})T(.{8}).*$/, '$1 $2')

export const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** A command line for the request. The key is a variable, so that it is in no file of a terminal's history. */
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
