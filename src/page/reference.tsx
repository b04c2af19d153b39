/** Makes the operations of the reference callable: fields, "send", the answer, and the curl command. */
import { render } from 'preact'
import { useState } from 'preact/hooks'
import { Code, curl, Field, type Fields, Form, formatJson } from './parts.js'

/** The key that was typed, which is stored nowhere else. */
const typed = { key: '' }

export function enhanceReference(root: HTMLElement): void {
  const { header = '' } = root.dataset
  const field = document.createElement('div')
  root.querySelector('main')?.prepend(field)
  const keep = (event: { currentTarget: HTMLInputElement }) => {
    typed.key = event.currentTarget.value.trim()
  }
  const label = `API key, to send requests from here (${header})`
  render(<Field label={label} type="password" autocomplete="off" onInput={keep} />, field)
  for (const details of root.querySelectorAll<HTMLDetailsElement>('details[data-call]'))
    details.addEventListener('toggle', () => enhance(details, header), { once: true })
}

function enhance(details: HTMLDetailsElement, header: string): void {
  const place = document.createElement('div')
  details.append(place)
  render(<Try details={details} header={header} />, place)
}

/** A form for the operation, by the attributes that the server writes. */
function Try({ details, header }: { details: HTMLDetailsElement; header: string }) {
  const { call = '', query = '', type = '', secret } = details.dataset
  const [method = '', path = ''] = call.split(' ')
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!)
  const inQuery = query.split(' ').filter(Boolean)
  const [values, setValues] = useState<Fields>({})
  const [body, setBody] = useState(details.querySelector('pre.sample')?.textContent ?? '')
  const [answer, setAnswer] = useState<{ status: string; text: string }>()
  const search = new URLSearchParams(inQuery.flatMap((name) => (values[name] ? [[name, values[name]]] : [])))
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values[name] ?? ''))
  const target = search.size === 0 ? filled : `${filled}?${search}`
  const sent = type === '' ? undefined : body
  const send = async () => {
    try {
      const headers = { [header]: typed.key, ...(sent === undefined ? {} : { 'content-type': type }) }
      const reply = await fetch(target, { method, headers, ...(sent === undefined ? {} : { body: sent }) })
      const text = await reply.text()
      // The message of reactor code that failed may be data.
      const isOpen = !reply.ok && !text.includes('reactor-failed')
      const shown = isOpen ? parse(text, text, (value) => value) : conceal(text, secret !== undefined)
      setAnswer({ status: `${reply.status} ${reply.statusText}`, text: shown })
    } catch (error) {
      setAnswer({ status: 'none', text: (error as Error).message })
    }
  }
  return (
    <Form class="try" send={() => void send()}>
      <h3>Try it</h3>
      {[...inPath, ...inQuery].map((name) => (
        <Field
          key={name}
          label={name}
          required={inPath.includes(name)}
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
      {answer !== undefined && (
        <div role="status">
          <Code label={`Answer: ${answer.status}`} text={answer.text} />
        </div>
      )}
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
  return parse(text, HIDDEN, hide)
}

/** `change` of the JSON as text; `otherwise` for what is not JSON. */
function parse(text: string, otherwise: string, change: (value: unknown) => unknown): string {
  try {
    return formatJson(change(JSON.parse(text)))
  } catch {
    return otherwise
  }
}
