/**
 * The pages that need no key: health, the OpenAPI document, and the reference for people made from it. Static HTML, no
 * script, a style sheet that the policy names by its digest.
 */
import { createHash } from 'node:crypto'
import { type Answer, answerResult, answerText, JSON_TYPE } from './exchange.js'
import type { OpenApiDocument, OpenApiOperation } from './openapi.js'
import type { JsonSchema } from './shapes.js'

export type Page = () => Answer

/** `createDocument` is called when one of its pages is first asked for. */
export function createPages(createDocument: () => OpenApiDocument): ReadonlyMap<string, Page> {
  let texts: { json: string; html: string } | undefined
  const prepare = () => {
    if (texts === undefined) {
      const document = createDocument()
      texts = { json: JSON.stringify(document), html: renderReference(document) }
    }
    return texts
  }
  return new Map<string, Page>([
    ['/healthz', () => answerResult(200, { status: 'ok' })],
    ['/openapi.json', () => answerText(200, JSON_TYPE, prepare().json)],
    ['/', () => answerHtml(prepare().html)],
  ])
}

const STYLE = `
:root { color-scheme: light dark; --ink: #1a1d21; --dim: #5b6470; --line: #d9dee4; --wash: #f4f6f8; --accent: #0b5cad }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ec; --dim: #9aa4b0; --line: #333b45; --wash: #1c2127; --accent: #7db8f5 }
  body { background: #14181c }
}
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 56rem; padding: 1rem; color: var(--ink); font: 16px/1.5 system-ui, sans-serif }
h1 { margin: 1rem 0 0 } h2 { margin: 2.5rem 0 .5rem; text-transform: capitalize }
p { margin: .5rem 0 } a { color: var(--accent) } .dim { color: var(--dim) }
nav { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 1rem 0; text-transform: capitalize }
code, pre { font: .875rem/1.5 ui-monospace, monospace }
pre { background: var(--wash); border: 1px solid var(--line); border-radius: 6px; overflow-x: auto; padding: .75rem }
code { overflow-wrap: anywhere }
details { border: 1px solid var(--line); border-radius: 6px; margin: .5rem 0; padding: 0 .75rem }
summary { cursor: pointer; padding: .75rem 0 } summary b { font-family: ui-monospace, monospace }
dl { margin: .5rem 0 1rem } dt { margin-top: .5rem } dd { margin: 0 0 0 1rem } h3 { font-size: 1rem; margin: 1rem 0 0 }
`

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

function answerHtml(html: string): Answer {
  const answer = answerText(200, 'text/html; charset=utf-8', html)
  answer.headers['content-security-policy'] = POLICY
  answer.headers['referrer-policy'] = 'no-referrer'
  return answer
}

function renderReference(document: OpenApiDocument): string {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )
  const sections = document.tags.map(({ name }) => {
    const own = operations.filter(({ operation }) => operation.tags[0] === name)
    const shown = own.map(({ path, method, operation }) => renderOperation(method, path, operation))
    return `<section id="${encode(name)}"><h2>${encode(name)}</h2>${shown.join('')}</section>`
  })
  const links = document.tags.map(({ name }) => `<a href="#${encode(name)}">${encode(name)}</a>`)
  const { title, summary, version, description } = document.info
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${encode(title)}</title><style>${STYLE}</style></head><body>
<h1>${encode(title)}</h1><p class="dim">${encode(summary)} Version ${encode(version)}.</p>
${paragraphs(String(description))}
<p><a href="/openapi.json">OpenAPI document</a> · <a href="/healthz">Health</a></p>
<nav>${links.join('')}</nav>
<main>${sections.join('')}
<section id="schemas"><h2>Schemas</h2>${renderComponents(document)}</section></main>
</body></html>`
}

function renderOperation(method: string, path: string, operation: OpenApiOperation): string {
  const { summary, description, parameters, requestBody, responses } = operation
  const samples = operation['x-code-samples'].map(({ source }) => source).join('\n')
  const body = requestBody === undefined ? '' : renderBody(requestBody)
  const statuses = Object.keys(responses).filter((status) => status !== 'default')
  return `<details id="${encode(operation.operationId)}"><summary><b>${method.toUpperCase()}</b> <code>${encode(path)}</code>
<br><span class="dim">${encode(summary)}</span></summary>
${paragraphs(description)}
${parameters.length === 0 ? '' : `<h3>Parameters</h3><dl>${parameters.map(renderParameter).join('')}</dl>`}${body}
<h3>Answers</h3><p>${statuses.map((status) => `<code>${status}</code>`).join(' ')} ${renderResult(responses)}</p>
<h3>On the command line</h3><pre>${encode(samples)}</pre></details>`
}

function renderParameter({ name, in: place, required, schema, description }: JsonSchema): string {
  const kind = `${describeType(schema as JsonSchema)}, in ${place}${required ? ', required' : ''}`
  return `<dt><code>${encode(name)}</code> <span class="dim">${encode(kind)}</span></dt><dd>${encode(description ?? '')}</dd>`
}

function renderBody({ content }: JsonSchema): string {
  return Object.entries(content as Record<string, { schema: JsonSchema; example?: unknown }>)
    .map(([type, { schema, example }]) => {
      const sample =
        example === undefined ? '' : `<pre>${encode(JSON.stringify(example, undefined, 2))}</pre>`
      return `<h3>Body <span class="dim">${encode(type)}</span></h3>${renderProperties(schema)}${sample}`
    })
    .join('')
}

function renderProperties({ properties = {}, required = [] }: JsonSchema): string {
  const rows = Object.entries(properties as Record<string, JsonSchema>).map(([name, schema]) => {
    const kind = `${describeType(schema)}${(required as string[]).includes(name) ? ', required' : ''}`
    const about = encode(schema.description ?? '')
    return `<dt><code>${encode(name)}</code> <span class="dim">${encode(kind)}</span></dt><dd>${about}</dd>`
  })
  return `<dl>${rows.join('')}</dl>`
}

function renderResult(responses: OpenApiOperation['responses']): string {
  const content = Object.values(responses)[0]?.content as Record<string, { schema: JsonSchema }> | undefined
  const schema = content?.['application/json']?.schema
  const named = JSON.stringify(schema ?? {}).match(/#\/components\/schemas\/(\w+)"\}+$/)?.[1]
  return named === undefined ? '' : `<a href="#schema-${named}">${named}</a>`
}

function renderComponents({ components }: OpenApiDocument): string {
  return Object.entries(components.schemas as Record<string, JsonSchema>)
    .map(
      ([name, schema]) =>
        `<details id="schema-${encode(name)}"><summary><code>${encode(name)}</code></summary>${renderProperties(schema)}</details>`,
    )
    .join('')
}

function describeType(schema: JsonSchema): string {
  const { type, enum: choices, items, $ref, default: usual } = schema
  if (typeof $ref === 'string') return $ref.split('/').at(-1)!
  if (Array.isArray(choices)) return `one of ${choices.join(', ')}`
  const name = type === undefined ? 'any JSON' : [type].flat().join(' or ')
  const inner = items === undefined ? '' : ` of ${describeType(items as JsonSchema)}`
  return `${name}${inner}${usual === undefined ? '' : `, default ${usual}`}`
}

function paragraphs(text: string): string {
  return text
    .split('\n\n')
    .map((each) => `<p>${encode(each)}</p>`)
    .join('')
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function encode(text: unknown): string {
  return String(text).replaceAll(/[&<>"']/g, (character) => ENTITIES[character]!)
}
