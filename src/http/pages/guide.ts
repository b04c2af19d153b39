/** Sections of the reference: how clients are pointed at this server, and what it emulates. */
import { encodeHtml as encode } from '../../domain/text/html.js'
import { CLIENT_PREFIX, rateArea, readAreas, readClients } from '../openapi/emulation.js'

export const GUIDE_STYLE = `
pre { tab-size: 2 } .wide { overflow-x: auto } table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid var(--line); padding: .375rem .75rem .375rem 0; text-align: left; vertical-align: top }
th { font-weight: 600 }
`

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

function markCode(text: string): string {
  return encode(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>')
}
