import { readFileSync } from 'node:fs'
import { findAsset } from '../../assets.js'
import { encodeHtml as encode } from '../../domain/text/html.js'
import type { HttpRequest, HttpResponse } from '../exchange.js'
import { answerResult, answerText, HEALTH_PATH, JSON_TYPE } from '../exchange.js'
import { CLIENT_PREFIX, rateArea, readAreas, readClients } from '../openapi/emulation.js'
import type { OpenApiDocument } from '../openapi/openapi.js'
import { answerHtml } from './html.js'

/** Answers the requests for one path. These requests need no API key. */
export type Page = (request: HttpRequest, traceId: string) => HttpResponse | Promise<HttpResponse>

/** `createDocument` is called at the first request for a page that needs it. */
export function createPages(
  createDocument: () => OpenApiDocument,
): ReadonlyMap<string, () => HttpResponse | Promise<HttpResponse>> {
  let made: { json: string; title: string } | undefined
  const prepare = () => {
    if (made !== undefined) return made
    const document = createDocument()
    made = { json: JSON.stringify(document), title: document.info.title }
    return made
  }
  let html: HttpResponse | undefined
  return new Map<string, () => HttpResponse | Promise<HttpResponse>>([
    [HEALTH_PATH, () => answerResult(200, { status: 'ok' })],
    // Clients use this path to check whether the server runs.
    ['/ping', () => answerResult(200, undefined)],
    ['/openapi.json', () => answerText(200, JSON_TYPE, prepare().json)],
    [
      '/llms.txt',
      () => answerText(200, 'text/plain; charset=utf-8', readFileSync(findAsset('../docs/llms.txt'), 'utf8')),
    ],
    [
      '/',
      async () => {
        html ??= await renderPage(prepare().title)
        return { ...html, headers: { ...html.headers } }
      },
    ],
  ])
}

/**
 * The script of the page renders the reference from the OpenAPI document. The HTML contains the sections that the
 * document lacks.
 */
async function renderPage(title: string): Promise<HttpResponse> {
  // Only this page needs the table of test cards.
  const { renderTestCards } = await import('./test-cards.js')
  const body = `<div id="page"></div>
<noscript><p>This page needs JavaScript. The interface is described in <a href="/openapi.json">the OpenAPI document</a>.</p></noscript>
<div id="guide" hidden>${renderClients()}${renderFidelity()}${renderTestCards()}</div>`
  // The script and the style are compressed in the package, because both are a large part of the package.
  const { brotliDecompressSync } = await import('node:zlib')
  const read = (name: string) => brotliDecompressSync(readFileSync(findAsset(`${name}.br`))).toString()
  return answerHtml({ title, body, style: read('page.css'), script: read('page.js') })
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
A dash: no contract of that time is known. A path of an area that is not emulated answers 501 with the title <q>Not Emulated</q>.</p>
<div class="scroll" tabindex="0"><table class="plain"><thead><tr><th scope="col">Area</th><th scope="col">January 2023</th><th scope="col">Today</th></tr></thead>
<tbody>${rows.join('')}</tbody></table></div></section>`
}
