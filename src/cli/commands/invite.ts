/** `coffer invite outbox|accept`, and what is said after somebody was invited: where the mail went. */

import { omitUndefined } from '../../domain/omit-undefined.js'
import { CofferError } from '../../errors.js'
import type { AnyOperation } from '../../framework/operation.js'
import type { OutboxLetter, OutboxMail } from '../../operations/invite/outbox.js'
import type { Vault } from '../../vault/vault.js'
import type { Desk } from '../context.js'
import { displayLines } from '../output/display.js'
import { chooseFormat, printNotice, printResult, printWarning } from '../output/output.js'
import { write } from '../output/terminal.js'
import { findTenantChoice } from './tenant-choice.js'

const COLUMNS = ['id', 'to', 'state', 'link_expires_at', 'created_at']
const LARGEST_PAGE = 100

/** All mail, or the one called `id` as its reader would see it. @throws CofferError `not_found`, `usage` */
export async function showOutbox(
  desk: Desk,
  id: string | undefined,
  flags: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { terminal, config } = desk
  const page = readCount(flags.page, '--page', Number.MAX_SAFE_INTEGER)
  const size = readCount(flags.size, '--size', LARGEST_PAGE)
  const tenant = await findTenantChoice(desk)
  const input = omitUndefined({ tenant, id, page, size })
  const result = await desk.reachVault((vault) => vault.command('invite outbox', input))
  const format = chooseFormat(terminal, config.output)
  if (id !== undefined && format === 'table' && config.fields === undefined)
    return printLetter(desk, result as OutboxLetter)
  await printResult(terminal, result, {
    format,
    columns: COLUMNS,
    fields: config.fields,
    known: ['server', 'failure', 'due_at', 'sent_at', 'link'],
    hints: { empty: 'No mail yet. Invite somebody: coffer invite create --help' },
  })
}

async function printLetter({ terminal }: Desk, letter: OutboxLetter): Promise<void> {
  const { to, subject, text } = letter
  await write(terminal.stdout, displayLines(`To: ${to}\nSubject: ${subject}\n\n${text}`))
  await printNotice(terminal, STATES[letter.state](letter)[0])
}

/** @throws CofferError `not_found` for a link that opens nothing, `usage` for what is no link */
export async function acceptInvitation(
  desk: Desk,
  given: string | undefined,
  flags: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { terminal, config } = desk
  const link = await readLinkText(desk, given)
  const names = omitUndefined({ first_name: flags.firstName, last_name: flags.lastName })
  const member = await desk.reachVault((vault) => vault.command('invite accept', { link, ...names }))
  await printResult(terminal, member, {
    known: ['user'],
    format: chooseFormat(terminal, config.output),
    fields: config.fields,
  })
}

async function readLinkText({ terminal, input }: Desk, given: string | undefined): Promise<string> {
  if (given === undefined && terminal.mayPrompt) {
    const { ask } = await import('../input/prompt.js')
    return ask(terminal, { message: 'Invitation link', missing: 'the link' })
  }
  return input.readValue(given ?? '-', 'the link')
}

/** Whether `definition` writes mail, so that its caller is told what became of it. */
export function writesMail({ name }: AnyOperation): boolean {
  return name === 'invite create' || name === 'invite resend'
}

/** What became of the mail of an invitation, once it was tried. */
export async function findDelivery(desk: Desk, vault: Vault, invitation: unknown): Promise<OutboxMail> {
  const { id } = invitation as { id: string }
  const input = omitUndefined({ tenant: await findTenantChoice(desk), id })
  return (await vault.command('invite delivery', input)) as OutboxMail
}

/** Tells the owner where the mail went, and its link as long as it is here. */
export async function noteDelivery({ terminal }: Desk, mail: OutboxMail): Promise<void> {
  if (mail.failure === undefined) await printNotice(terminal, describeMail(mail))
  else await printWarning(terminal, describeMail(mail))
}

function describeMail(mail: OutboxMail): string {
  const { link, state } = mail
  const [where, advice] = STATES[state](mail)
  return [
    where,
    ...(link === undefined ? [] : [`Link: ${link}`]),
    ...(advice === undefined ? [] : [advice]),
  ].join('\n')
}

const STATES: Record<OutboxMail['state'], (mail: OutboxMail) => [where: string, advice?: string]> = {
  outbox: ({ id }) => [
    'No mail server is set, so the mail stays in the outbox.',
    `Read it: coffer invite outbox ${id}`,
  ],
  waiting: ({ server, failure }) =>
    failure === undefined
      ? ['The mail waits to be sent.']
      : [
          `The mail could not be handed to ${server}: ${failure}`,
          'It is tried again while coffer serve runs, and with the next invitation.',
        ],
  sent: ({ server }) => [`The mail was handed to ${server}.`],
  refused: ({ server, failure, invitation_id }) => [
    `The mail was not taken by ${server}: ${failure}`,
    `It is not tried again. Send a new one: coffer invite resend ${invitation_id}`,
  ],
  dropped: () => ['The mail was not sent, because its link had ended.'],
}

function readCount(text: unknown, flag: string, most: number): number | undefined {
  if (text === undefined) return undefined
  const count = /^[1-9]\d{0,15}$/.test(String(text)) ? Number(text) : Number.NaN
  if (count <= most) return count
  throw new CofferError(
    'usage',
    `${flag} takes a number from 1${most === LARGEST_PAGE ? ` to ${most}` : ''}.`,
  )
}
