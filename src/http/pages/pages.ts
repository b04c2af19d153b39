import { readFileSync } from 'node:fs'
import { findAsset } from '../../assets.js'
import { encodeHtml as encode } from '../../domain/text/html.js'
import type { JsonSchema } from '../../framework/schema.js'
import {
  answerResult,
  answerText,
  HEALTH_PATH,
  type HttpRequest,
  type HttpResponse,
  JSON_TYPE,
} from '../exchange.js'
import { CLIENT_PREFIX, rateArea, readAreas, readClients } from '../openapi/emulation.js'
import type { OpenApiDocument, OpenApiOperation } from '../openapi/openapi.js'
import { answerHtml } from './html.js'

/** Answers for one path, without a key. */
export type Page = (request: HttpRequest, traceId: string) => HttpResponse | Promise<HttpResponse>

/** `createDocument` is called at the first request for a page that needs it. */
export function createPages(createDocument: () => OpenApiDocument): ReadonlyMap<string, () => HttpResponse> {
  let made: { json: string; html: HttpResponse } | undefined
  const prepare = () => {
    if (made !== undefined) return made
    const document = createDocument()
    made = { json: JSON.stringify(document), html: renderReference(document) }
    return made
  }
  return new Map<string, () => HttpResponse>([
    [HEALTH_PATH, () => answerResult(200, { status: 'ok' })],
    // Clients ask for it whether the server is there.
    ['/ping', () => answerResult(200, undefined)],
    ['/openapi.json', () => answerText(200, JSON_TYPE, prepare().json)],
    ['/', () => ({ ...prepare().html, headers: { ...prepare().html.headers } })],
  ])
}

const GUIDE_STYLE = `
pre { tab-size: 2 } .wide { overflow-x: auto } table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid var(--line); padding: .375rem .75rem .375rem 0; text-align: left; vertical-align: top }
th { font-weight: 600 }
`

function renderReference({ paths, tags, info, components }: OpenApiDocument): HttpResponse {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )
  const sections = tags.map(({ name }) => {
    const own = operations.filter(({ operation }) => operation.tags[0] === name)
    const shown = own.map(({ path, method, operation }) => renderOperation(method, path, operation))
    return `<section id="${encode(name)}"><h2>${encode(name)}</h2>${shown.join('')}</section>`
  })
  const links = tags.map(({ name }) => `<a href="#${encode(name)}">${encode(name)}</a>`)
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) =>
      `<details id="schema-${encode(name)}"><summary><code>${encode(name)}</code></summary>${renderProperties(schema)}</details>`,
  )
  const { title, summary, version, description } = info
  const [scheme] = Object.values(components.securitySchemes)
  const body = `<div id="reference" data-header="${encode(scheme?.name ?? '')}"><header><h1>${encode(title)}</h1><p class="dim">${encode(summary)} Version ${encode(version)}.</p>
${paragraphs(description)}
<p><a href="/openapi.json">OpenAPI document</a> · <a href="/healthz">Health</a></p></header>
<nav>${links.join('')}<a href="#clients">Clients</a><a href="#fidelity">What is emulated</a></nav>
<main>${sections.join('')}
${renderClients()}
${renderFidelity()}
<section id="schemas"><h2>Schemas</h2>${schemas.join('')}</section></main></div>`
  const read = (name: string) => readFileSync(findAsset(name), 'utf8')
  return answerHtml({ title, body, style: GUIDE_STYLE + read('page.css'), script: read('page.js') })
}

function renderOperation(method: string, path: string, operation: OpenApiOperation): string {
  const { operationId, summary, description, parameters, requestBody, responses } = operation
  const samples = operation['x-code-samples'].map(({ source }) => source).join('\n')
  const body = requestBody === undefined ? '' : renderBody(requestBody)
  const statuses = Object.keys(responses).filter((status) => status !== 'default')
  const rows = parameters.map(({ name, in: place, required, schema, description }) =>
    renderRow(String(name), describeType(schema as JsonSchema), [`in ${place}`, required], description),
  )
  return `<details id="${encode(operationId)}"${renderCall(method, path, operation)}><summary><b>${method.toUpperCase()}</b> <code>${encode(path)}</code>
<br><span class="dim">${encode(summary)}</span></summary>
${paragraphs(description)}
${rows.length === 0 ? '' : `<h3>Parameters</h3><dl>${rows.join('')}</dl>`}${body}
<h3>Answers</h3><p>${statuses.map((status) => `<code>${status}</code>`).join(' ')} ${renderResult(responses)}</p>
<h3>On the command line</h3><pre tabindex="0">${encode(samples)}</pre></details>`
}

/** The attributes that the script needs to send such a request; none if the path is not known. */
function renderCall(method: string, path: string, operation: OpenApiOperation): string {
  const { operationId: id, parameters, requestBody } = operation
  if (path.startsWith('/proxy/') || path === '/proxy') return ''
  const query = parameters.filter((each) => each.in === 'query').map(({ name }) => String(name))
  const [type = ''] = Object.keys((requestBody?.content as object | undefined) ?? {})
  const attributes = { call: `${method.toUpperCase()} ${path}`, query: query.join(' '), type }
  const written = Object.entries(attributes).filter(([, value]) => value !== '')
  const marks = written.map(([name, value]) => ` data-${name}="${encode(value)}"`)
  return `${marks.join('')}${ONLY_DATA.includes(id) ? ' data-secret' : ''}`
}

/** Their answers are data of tokens in a form of the caller's. */
const ONLY_DATA = ['token-detokenize', 'reactor-react', 'reactor-result']

function renderBody({ content }: JsonSchema): string {
  return Object.entries(content as Record<string, { schema?: JsonSchema; example?: unknown }>)
    .map(([type, { schema = {}, example }]) => {
      const text = encode(JSON.stringify(example, undefined, 2) ?? '')
      const sample = text === '' ? '' : `<pre class="sample" tabindex="0">${text}</pre>`
      return `<h3>Body <span class="dim">${encode(type)}</span></h3>${renderProperties(schema)}${sample}`
    })
    .join('')
}

function renderProperties({ properties = {}, required = [] }: JsonSchema): string {
  const rows = Object.entries(properties as Record<string, JsonSchema>).map(([name, schema]) =>
    renderRow(name, describeType(schema), [(required as string[]).includes(name)], schema.description),
  )
  return `<dl>${rows.join('')}</dl>`
}

/** `facts`: texts, and whether it is required. */
function renderRow(name: string, type: string, facts: readonly unknown[], description: unknown): string {
  const kind = [type, ...facts.filter(Boolean).map((fact) => (fact === true ? 'required' : fact))].join(', ')
  return `<dt><code>${encode(name)}</code> <i>${encode(kind)}</i></dt><dd>${encode(description ?? '')}</dd>`
}

function renderResult(responses: OpenApiOperation['responses']): string {
  const content = Object.values(responses)[0]?.content as Record<string, { schema: JsonSchema }> | undefined
  const schema = content?.['application/json']?.schema
  const named = JSON.stringify(schema ?? {}).match(/#\/components\/schemas\/(\w+)"\}+$/)?.[1]
  return named === undefined ? '' : `<a href="#schema-${named}">${named}</a>`
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
  const all = text.split('\n\n').map((each) => `<p>${encode(each)}</p>`)
  return all.join('')
}

export function renderClients(): string {
  const shown = readClients().map(({ name, package: source, code }) => {
    const from = source === undefined ? '' : ` <code class="dim">${encode(source)}</code>`
    return `<h3>${encode(name)}${from}</h3><pre tabindex="0">${encode(code.join('\n'))}</pre>`
  })
  const start = `coffer serve --prefix ${CLIENT_PREFIX} --starter-apps`
  return `<section id="clients"><h2>Clients</h2>
<p>Start the server with <code>${start}</code>: these clients send the header <code>${CLIENT_PREFIX.toUpperCase()}-API-KEY</code>.
Give them its address and one of its keys.</p>${shown.join('')}</section>`
}

export function renderFidelity(): string {
  const markCode = (text: string) => encode(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>')
  const rows = readAreas().map((each) => {
    const cells = rateArea(each).map((text) => `<td>${markCode(text)}</td>`)
    return `<tr><th scope="row">${encode(each.area)}</th>${cells.join('')}</tr>`
  })
  return `<section id="fidelity"><h2>What is emulated</h2>
<p>What this server emulates of the interface of January 2023 and of the one that today’s clients call.
A dash: no contract of that time is known. A path of an area that is not emulated answers 404 with the title <q>Not Emulated</q>.</p>
<div class="wide" tabindex="0"><table><thead><tr><th scope="col">Area</th><th scope="col">January 2023</th><th scope="col">Today</th></tr></thead>
<tbody>${rows.join('')}</tbody></table></div></section>`
}
