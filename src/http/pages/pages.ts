/** The public pages: health, the OpenAPI document, and an HTML reference that is generated from it. */
import { encodeHtml as encode } from '../../domain/text/html.js'
import type { JsonSchema } from '../../framework/schema.js'
import { answerResult, answerText, type HttpRequest, type HttpResponse, JSON_TYPE } from '../exchange.js'
import type { OpenApiDocument, OpenApiOperation } from '../openapi/openapi.js'
import { GUIDE_STYLE, renderClients, renderFidelity } from './guide.js'
import { answerHtml } from './html.js'
import { readScript } from './script.js'

export const HEALTH_PATH = '/healthz'

/** Answers for one path, without a key. */
export type Page = (request: HttpRequest, traceId: string) => HttpResponse | Promise<HttpResponse>

/** `createDocument` is called at the first request for a page that needs it. */
export function createPages(createDocument: () => OpenApiDocument): ReadonlyMap<string, () => HttpResponse> {
  let texts: { json: string; html: HttpResponse } | undefined
  const prepare = () => {
    if (texts === undefined) {
      const document = createDocument()
      texts = { json: JSON.stringify(document), html: renderReference(document) }
    }
    return texts
  }
  return new Map<string, () => HttpResponse>([
    [HEALTH_PATH, () => answerResult(200, { status: 'ok' })],
    ['/openapi.json', () => answerText(200, JSON_TYPE, prepare().json)],
    ['/', () => ({ ...prepare().html, headers: { ...prepare().html.headers } })],
  ])
}

function renderReference(document: OpenApiDocument): HttpResponse {
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
  const [scheme] = Object.values(document.components.securitySchemes as Record<string, { name: string }>)
  const header = scheme?.name ?? ''
  const body = `<div id="reference" data-header="${encode(header)}"><header><h1>${encode(title)}</h1><p class="dim">${encode(summary)} Version ${encode(version)}.</p>
${paragraphs(String(description))}
<p><a href="/openapi.json">OpenAPI document</a> · <a href="/healthz">Health</a></p></header>
<nav>${links.join('')}<a href="#clients">Clients</a><a href="#fidelity">What is emulated</a></nav>
<main>${sections.join('')}
${renderClients()}
${renderFidelity()}
<section id="schemas"><h2>Schemas</h2>${renderComponents(document)}</section></main></div>`
  const { code, style } = readScript()
  return answerHtml({ title: String(title), body, style: GUIDE_STYLE + style, script: code })
}

function renderOperation(method: string, path: string, operation: OpenApiOperation): string {
  const { summary, description, parameters, requestBody, responses } = operation
  const samples = operation['x-code-samples'].map(({ source }) => source).join('\n')
  const body = requestBody === undefined ? '' : renderBody(requestBody)
  const statuses = Object.keys(responses).filter((status) => status !== 'default')
  return `<details id="${encode(operation.operationId)}"${renderCall(method, path, operation)}><summary><b>${method.toUpperCase()}</b> <code>${encode(path)}</code>
<br><span class="dim">${encode(summary)}</span></summary>
${paragraphs(description)}
${parameters.length === 0 ? '' : `<h3>Parameters</h3><dl>${parameters.map(renderParameter).join('')}</dl>`}${body}
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

function renderParameter({ name, in: place, required, schema, description }: JsonSchema): string {
  const kind = `${describeType(schema as JsonSchema)}, in ${place}${required ? ', required' : ''}`
  return `<dt><code>${encode(name)}</code> <i>${encode(kind)}</i></dt><dd>${encode(description ?? '')}</dd>`
}

function renderBody({ content }: JsonSchema): string {
  return Object.entries(content as Record<string, { schema?: JsonSchema; example?: unknown }>)
    .map(([type, { schema = {}, example }]) => {
      const sample =
        example === undefined
          ? ''
          : `<pre class="sample" tabindex="0">${encode(JSON.stringify(example, undefined, 2))}</pre>`
      return `<h3>Body <span class="dim">${encode(type)}</span></h3>${renderProperties(schema)}${sample}`
    })
    .join('')
}

function renderProperties({ properties = {}, required = [] }: JsonSchema): string {
  const rows = Object.entries(properties as Record<string, JsonSchema>).map(([name, schema]) => {
    const kind = `${describeType(schema)}${(required as string[]).includes(name) ? ', required' : ''}`
    const about = encode(schema.description ?? '')
    return `<dt><code>${encode(name)}</code> <i>${encode(kind)}</i></dt><dd>${about}</dd>`
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
