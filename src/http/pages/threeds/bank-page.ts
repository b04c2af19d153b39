import { encodeHtml as encode } from '../../../domain/text/html.js'
import { answerText, type HttpResponse } from '../../exchange.js'
import { digest, renderDocument, STYLE } from '../html.js'

/** `body` is HTML in which all user text is escaped. */
interface BankPageContent {
  status?: number
  title: string
  body: string
  script?: string | undefined
  hasFrames?: boolean
  /** If true, no page can show this page in a frame. */
  refusesFrames?: boolean
}

const BANK_STYLE = `${STYLE}
main { max-width: 32rem; margin: 0 auto } strong, p { overflow-wrap: anywhere }
h1 { font-size: 1.25rem; margin: .5rem 0 0 }
.mark { border: 1px solid var(--line); border-radius: 6px; color: var(--dim); display: inline-block; font-size: .875rem; margin: 0; padding: .125rem .5rem }
label { display: block; font-weight: 600 }
input { background: transparent; border: 1px solid var(--dim); border-radius: 6px; color: inherit; font: inherit; padding: .5rem .75rem; width: 100% }
button { border: 1px solid var(--dim); border-radius: 6px; background: transparent; color: inherit; cursor: pointer; font: inherit; font-weight: 600; margin: .25rem .25rem 0 0; min-height: 2.75rem; padding: 0 1rem }
button.main { background: #0b5cad; border-color: #0b5cad; color: #fff }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
.fault { color: var(--fault) } [aria-invalid] { border-color: var(--fault) }
:root { --fault: #b3261e } @media (prefers-color-scheme: dark) { :root { --fault: #ffb4ab } }
iframe { border: 0; display: block; height: 30rem; width: 100% } iframe[hidden] { display: none }
body:has(> iframe) { max-width: none; padding: 0 } body > iframe { height: 100vh }
`

const MARK = '<p class="mark">Coffer test bank: no real bank, no real money</p>'

/**
 * Sites under test show these pages in frames, so these pages cannot have the policy of our other pages. The policy
 * `sandbox` gives each page a separate origin. Therefore these pages cannot read or write other pages of Coffer, and a
 * form that they send counts as a form of another site.
 */
export function answerBankHtml(page: BankPageContent): HttpResponse {
  const { status = 200, title, body, script, hasFrames = false, refusesFrames = false } = page
  const html = renderDocument({ title, body, style: BANK_STYLE, script })
  const answer = answerText(status, 'text/html; charset=utf-8', html)
  const policy = [
    'sandbox allow-forms allow-scripts',
    "default-src 'none'",
    `style-src ${digest(BANK_STYLE)}`,
    script && `script-src ${digest(script)}`,
    hasFrames && 'frame-src *',
    "base-uri 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
    refusesFrames && "frame-ancestors 'none'",
  ]
  answer.headers['content-security-policy'] = policy.filter(Boolean).join('; ')
  answer.headers['referrer-policy'] = 'no-referrer'
  return answer
}

export function renderBank(title: string, content: string): string {
  return `<main>${MARK}<h1>${encode(title)}</h1>${content}</main>`
}

/**
 * Passes a value to the script of the page. The script itself must not change, because the content security policy
 * contains the digest of the script.
 */
export function renderData(name: string, value: unknown): string {
  return `<data id="${name}" value="${encode(JSON.stringify(value))}"></data>`
}

/** The script of the page sends the form at once. Without JavaScript, the page shows a button. */
export function renderForm(
  action: string,
  fields: Record<string, string>,
  { id = 'form', target = '' } = {},
) {
  const inputs = Object.entries(fields).map(
    ([name, value]) => `<input type="hidden" name="${name}" value="${encode(value)}">`,
  )
  return (
    `<form id="${id}" method="post" action="${encode(action)}"${target && ` target="${target}"`}>${inputs.join('')}` +
    '<noscript><button class="main">Continue</button></noscript></form>'
  )
}
