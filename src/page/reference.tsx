/** Makes the operations of the reference callable: fields, "send", the answer, and the curl command. */
import { render } from 'preact'
import { useState } from 'preact/hooks'
import { Code, curl, Fault, Field, Form, spell } from './parts.js'

/** The key that was typed, which is stored nowhere else. */
const typed = { key: '' }

export function enhanceReference(root: HTMLElement): void {
  const { header = '' } = root.dataset
  const field = document.createElement('div')
  root.querySelector('main')?.prepend(field)
  render(<KeyField header={header} />, field)
  for (const details of root.querySelectorAll<HTMLDetailsElement>('details[data-call]'))
    details.addEventListener('toggle', () => enhance(details, header), { once: true })
}

/** Reads the attributes that the server writes. */
function readCall(details: HTMLDetailsElement) {
  const { call = '', query = '', type = '', secret } = details.dataset
  const [method = '', path = ''] = call.split(' ')
  const sample = details.querySelector('pre.sample')?.textContent ?? ''
  return {
    method,
    path,
    query: query.split(' ').filter(Boolean),
    type,
    sample,
    isSecret: secret !== undefined,
  }
}

function enhance(details: HTMLDetailsElement, header: string): void {
  const place = document.createElement('div')
  details.append(place)
  render(<Try callable={readCall(details)} header={header} />, place)
}

function KeyField({ header }: { header: string }) {
  return (
    <p>
      <label>
        API key, to send requests from here <span class="dim">({header})</span>{' '}
        <input
          type="password"
          autocomplete="off"
          onInput={(event) => {
            typed.key = event.currentTarget.value.trim()
          }}
        />
      </label>
    </p>
  )
}

function Try({ callable, header }: { callable: ReturnType<typeof readCall>; header: string }) {
  const { method, path, query, type, sample, isSecret } = callable
  const names = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!)
  const [values, setValues] = useState<Record<string, string>>({})
  const [body, setBody] = useState(sample)
  const [answer, setAnswer] = useState<{ status: string; text: string } | { error: string }>()
  const search = new URLSearchParams(query.flatMap((name) => (values[name] ? [[name, values[name]]] : [])))
  const target = `${path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values[name] ?? ''))}${
    search.size === 0 ? '' : `?${search}`
  }`
  const sent = type === '' ? undefined : body
  const send = async () => {
    try {
      const headers = { [header]: typed.key, ...(sent === undefined ? {} : { 'content-type': type }) }
      const reply = await fetch(target, { method, headers, ...(sent === undefined ? {} : { body: sent }) })
      const text = await reply.text()
      // The message of reactor code that failed may be data.
      const isOpen = !reply.ok && !text.includes('reactor-failed')
      setAnswer({
        status: `${reply.status} ${reply.statusText}`,
        text: isOpen ? pretty(text) : conceal(text, isSecret),
      })
    } catch (error) {
      setAnswer({ error: (error as Error).message })
    }
  }
  return (
    <Form class="try" send={() => void send()}>
      <h3>Try it</h3>
      {[...names, ...query].map((name) => (
        <Field
          key={name}
          label={name}
          required={names.includes(name)}
          onInput={(event) => setValues({ ...values, [name]: event.currentTarget.value })}
        />
      ))}
      {sent !== undefined && (
        <label class="wide">
          Body
          <textarea
            rows={Math.min(16, body.split('\n').length + 1)}
            spellcheck={false}
            value={body}
            onInput={(event) => setBody(event.currentTarget.value)}
          />
        </label>
      )}
      <button type="submit">Send</button>
      <Code label="The same in a terminal" isCopied text={curl(method, target, header, sent, type)} />
      {answer !== undefined &&
        ('error' in answer ? (
          <Fault text={answer.error} />
        ) : (
          <div role="status">
            <Code label={`Answer: ${answer.status}`} text={answer.text} />
          </div>
        ))}
    </Form>
  )
}

const HIDDEN = '(not shown on this page)'

/** Hides data of tokens, keys of proxies, and the whole of an answer that is only data. */
function conceal(text: string, isSecret: boolean): string {
  if (text === '') return '(empty)'
  if (isSecret) return HIDDEN
  const hide = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(hide)
    if (typeof value !== 'object' || value === null) return value
    const isHidden = (name: string) =>
      (name === 'data' && !('pagination' in value)) || (name === 'key' && 'destination_url' in value)
    const entries = Object.entries(value).map(([name, item]) => [name, isHidden(name) ? HIDDEN : hide(item)])
    return Object.fromEntries(entries)
  }
  try {
    return spell(hide(JSON.parse(text)))
  } catch {
    return HIDDEN
  }
}

function pretty(text: string): string {
  try {
    return spell(JSON.parse(text))
  } catch {
    return text
  }
}
