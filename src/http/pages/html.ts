/**
 * HTML answers with a common style. The content security policy allows only our own scripts, and no external resources.
 */
import { createHash } from 'node:crypto'
import { encodeHtml } from '../../domain/text/html.js'
import { answerText, type HttpResponse } from '../exchange.js'

/** `body` is HTML in which all user text is escaped. */
interface HtmlPage {
  status?: number
  title: string
  body: string
  style: string
  script?: string
  hasForm?: boolean
}

export const STYLE = `
:root { color-scheme: light dark; --ink: #1a1d21; --dim: #5b6470; --line: #d9dee4; --accent: #0b5cad }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ec; --dim: #9aa4b0; --line: #333b45; --accent: #7db8f5 }
  body { background: #14181c }
}
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 56rem; padding: 1rem; color: var(--ink); font: 16px/1.5 system-ui, sans-serif }
h1 { margin: 1rem 0 0 } p { margin: .5rem 0 } a { color: var(--accent) } .dim { color: var(--dim) }
`

/** The content security policy names the style sheet and the script by their digests (CSP 3, 2.3.1). */
export function answerHtml(page: HtmlPage): HttpResponse {
  const { status = 200, title, body, style, script, hasForm = false } = page
  const answer = answerText(
    status,
    'text/html; charset=utf-8',
    renderDocument({ title, body, style, script }),
  )
  const scripts =
    script === undefined
      ? ''
      : `script-src ${digest(script)}; connect-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'; `
  answer.headers['content-security-policy'] =
    `default-src 'none'; style-src ${digest(style)}; ${scripts}base-uri 'none'; ` +
    `form-action ${hasForm ? "'self'" : "'none'"}; frame-ancestors 'none'`
  answer.headers['referrer-policy'] = 'no-referrer'
  return answer
}

type Content = Pick<HtmlPage, 'title' | 'body' | 'style'> & { script?: string | undefined }

export function renderDocument({ title, body, style, script }: Content): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${encodeHtml(title)}</title><style>${style}</style></head><body>
${body}
${script === undefined ? '' : `<script type="module">${script}</script>\n`}</body></html>`
}

export const digest = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

export function answerMessage(status: number, title: string, text: string): HttpResponse {
  const body = `<main><h1>${encodeHtml(title)}</h1><p>${encodeHtml(text)}</p></main>`
  return answerHtml({ status, title, body, style: MESSAGE_STYLE })
}

export const MESSAGE_STYLE = `${STYLE}main { max-width: 32rem; margin: 0 auto } strong { overflow-wrap: anywhere }`
