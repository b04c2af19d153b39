/**
 * The mail that an invitation is, as text and as HTML, and when a mail that failed is tried again. It knows no mail
 * server; whatever a person chose is escaped, and none of it stands in a header but the address.
 */
import { formatDate } from './dates.js'
import { encodeHtml } from './html.js'

/** All that is told of an invitation. Dates as the API writes them. */
export interface LetterFacts {
  tenantName: string
  email: string
  /** Absent where it is not known any more. */
  link?: string
  linkExpiresAt: string
}

/** `html` is what stands in the body of {@link wrapLetter}, and on any page with its style. */
export interface Letter {
  subject: string
  text: string
  html: string
}

/** No picture, no script, nothing from elsewhere: the mail tells nobody that it was read. */
export const LETTER_STYLE = `
.letter { color: #1a1d21; background: #fff; font: 16px/1.5 system-ui, sans-serif; max-width: 36rem; overflow-wrap: anywhere; padding: 1rem }
.letter a { color: #0b5cad } .letter p { margin: 0 0 1rem }
.letter .button { background: #0b5cad; border-radius: 6px; color: #fff; display: inline-block; padding: .75rem 1.25rem; text-decoration: none }
.letter .small { color: #5b6470; font-size: .875rem }
`

const LINK_GONE = '(the link is not kept here)'

/** The invitation in words. The subject names no tenant, so that nobody's text stands in a header. */
export function composeLetter({ tenantName, email, link, linkExpiresAt }: LetterFacts): Letter {
  const until = describeDate(linkExpiresAt)
  const tenant = onOneLine(tenantName)
  const opening = `You are invited to join the tenant "${tenant}" with this address, ${email}.`
  const ends = `The link works once, until ${until}. A newer invitation replaces it.`
  const ignore = 'If you did not expect this, ignore it: nothing happens unless you accept.'
  const text = `Hello,

${opening}

To accept, open this link and press the button there:

${link ?? LINK_GONE}

${ends}
${ignore}
`
  const open =
    link === undefined
      ? `<p>${LINK_GONE}</p>`
      : `<p><a class="button" rel="noreferrer" href="${encodeHtml(link)}">See the invitation</a></p>
<p class="small">Or open this address: <a rel="noreferrer" href="${encodeHtml(link)}">${encodeHtml(link)}</a></p>`
  const html = `<div class="letter">
<p>Hello,</p>
<p>You are invited to join the tenant <strong><bdi>${encodeHtml(tenant)}</bdi></strong> with this address, ${encodeHtml(email)}.</p>
${open}
<p class="small">${ends}<br>${ignore}</p>
</div>`
  return { subject: 'You are invited to a Coffer tenant', text, html }
}

/** A whole document, as it is mailed. */
export function wrapLetter({ subject, html }: Letter): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer"><title>${encodeHtml(subject)}</title><style>${LETTER_STYLE}</style></head>
<body>${html}</body></html>`
}

/** In a plain text a line break could start words that look like ours. */
function onOneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]+/gu, ' ')
}

/** How long to wait after the `attempts`th failure of a mail, ms: 30 s, doubling, at most an hour. */
export function delayMail(attempts: number): number {
  return Math.min(FIRST_DELAY_MS * 2 ** (attempts - 1), LONGEST_DELAY_MS)
}

const FIRST_DELAY_MS = 30_000
const LONGEST_DELAY_MS = 3_600_000

/** For people: `27 August 2030, 02:23 UTC`. */
export function describeDate(date: string): string {
  const [, year, month, day, time] = /^(\d+)-(\d\d)-(\d\d)T(\d\d:\d\d)/.exec(formatDate(Date.parse(date)))!
  return `${Number(day)} ${MONTHS[Number(month) - 1]} ${year}, ${time} UTC`
}

const MONTHS = 'January February March April May June July August September October November December'.split(
  ' ',
)
