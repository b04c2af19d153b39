/** Mails of invitations and webhooks. In the HTML, user text is escaped. */
import { formatDate, MONTHS } from '../dates.js'
import { encodeHtml } from '../text/html.js'

export type Letter = ReturnType<typeof composeLetter>

/** The mail has no images and no external resources, so that nobody can track who opens it. */
const LETTER_STYLE = `
.letter { color: #1a1d21; background: #fff; font: 16px/1.5 system-ui, sans-serif; max-width: 36rem; overflow-wrap: anywhere; padding: 1rem }
.letter a { color: #0b5cad } .letter p { margin: 0 0 1rem }
.letter .button { background: #0b5cad; border-radius: 6px; color: #fff; display: inline-block; padding: .75rem 1.25rem; text-decoration: none }
.letter .small { color: #5b6470; font-size: .875rem }
`

const LINK_GONE = '(the link is not kept here)'

/** The subject is fixed, because a header must not contain user text. */
export function composeLetter(
  facts: Record<'tenantName' | 'email' | 'linkExpiresAt', string> & { link?: string },
) {
  const { tenantName, email, link, linkExpiresAt } = facts
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

export function composeDisabled(facts: Record<'tenantName' | 'name' | 'url', string>): Letter {
  const [tenant, name, url] = [facts.tenantName, facts.name, facts.url].map(onOneLine) as [
    string,
    string,
    string,
  ]
  const opening = `The webhook "${name}" of the tenant "${tenant}" is disabled, because an event could not be sent to ${url}.`
  const advice = 'No event is sent to it until you update it. See what failed: coffer webhook deliveries'
  const text = `Hello,\n\n${opening}\n\n${advice}\n`
  const html = `<div class="letter">\n<p>Hello,</p>\n<p>${encodeHtml(opening)}</p>\n<p>${encodeHtml(advice)}</p>\n</div>`
  return { subject: 'A Coffer webhook is disabled', text, html }
}

export function wrapLetter({ subject, html }: Letter): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer"><title>${encodeHtml(subject)}</title><style>${LETTER_STYLE}</style></head>
<body>${html}</body></html>`
}

/** Without line breaks, user text cannot look like a line of the mail. */
function onOneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]+/gu, ' ')
}

export function describeDate(date: string): string {
  const [, year, month, day, time] = /^(\d+)-(\d\d)-(\d\d)T(\d\d:\d\d)/.exec(formatDate(Date.parse(date)))!
  return `${Number(day)} ${MONTHS[Number(month) - 1]} ${year}, ${time} UTC`
}
