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
    // Clients request this path to check that the server runs.
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
 * The script of the page renders the reference from the OpenAPI document. This HTML contains the sections that are not
 * in the document.
 */
async function renderPage(title: string): Promise<HttpResponse> {
  const { renderTestCards } = await import('./test-cards.js')
  const body = `<div id="page"></div>
<noscript><p>This page needs JavaScript. The interface is described in <a href="/openapi.json">the OpenAPI document</a>.</p></noscript>
<div id="guide" hidden>${renderClients()}${renderFidelity()}${renderTestCards()}</div>`
  // The script and the style are a large part of the package, so the package contains them compressed.
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
Give each client the address of the server and one of its keys.</p>${shown.join('')}</section>`
}

export function renderFidelity(): string {
  const markCode = (text: string) => encode(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>')
  const rows = readAreas().map((each) => {
    const cells = rateArea(each).map((text) => `<td>${markCode(text)}</td>`)
    return `<tr><th scope="row">${encode(each.area)}</th>${cells.join('')}</tr>`
  })
  return `<section id="fidelity"><h2>What is emulated</h2>
<p>The table compares this server with the interface of January 2023 and with the interface of today’s clients.
A dash means that no contract of that time is known. If an area is not emulated, its requests get status 501 and the title <q>Not Emulated</q>.</p>
<div class="scroll" tabindex="0"><table class="plain"><thead><tr><th scope="col">Area</th><th scope="col">January 2023</th><th scope="col">Today</th></tr></thead>
<tbody>${rows.join('')}</tbody></table></div></section>`
}
