/** `coffer invite outbox | accept | create | resend`: prints mail and its delivery state. */

import { omitUndefined } from '../../domain/omit-undefined.js'
import { quoteWord } from '../../domain/text/quote-word.js'
import type { OutboxLetter, OutboxMail } from '../../operations/invite/outbox.js'
import { displayLines } from '../output/display.js'
import { printWarning } from '../output/output.js'
import { write } from '../output/terminal.js'
import type { Hooks } from '../task.js'

/** Prints a single mail as text. */
export const outbox: Hooks = {
  run: async ({ context, input, format, ask, print, notice }) => {
    const result = await ask()
    if (input.id === undefined || format !== 'table' || context.config.fields !== undefined)
      return print(result)
    const { to, subject, text, state, ...rest } = result as OutboxLetter
    await write(context.terminal.stdout, displayLines(`To: ${to}\nSubject: ${subject}\n\n${text}`))
    await notice(STATES[state]({ to, subject, state, ...rest })[0])
  },
}

/** Reads the link from a prompt or standard input, so that other processes cannot see it. */
export const accept: Hooks = {
  gather: async (context, [given], { firstName, lastName }) =>
    omitUndefined({
      link: await context.input.readGiven(context, given, 'the link', { message: 'Invitation link' }),
      first_name: firstName,
      last_name: lastName,
    }),
}

/** Also prints the delivery state of the invitation's mail, and its link if stored, for the owner. */
export const mail: Hooks = {
  run: async ({ context, key, ask, print, notice, withOpenVault }) => {
    const [invitation, letter] = await withOpenVault(async () => {
      const result = (await ask()) as { id: string }
      if (key !== undefined) return [result]
      return [result, (await ask({ id: result.id, wait: true }, 'invite outbox')) as OutboxMail] as const
    })
    await print(invitation)
    if (letter === undefined) return
    const text = describeMail(letter)
    await (letter.failure === undefined ? notice(text) : printWarning(context.terminal, text))
  },
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
    'No mail server is configured, so the mail stays in the outbox.',
    `Read it: coffer invite outbox ${quoteWord(id)}`,
  ],
  waiting: ({ server, failure }) =>
    failure === undefined
      ? ['The mail is waiting to be sent.']
      : [
          `The mail could not be sent to ${server}: ${failure}`,
          'It is sent again while coffer serve runs, and with the next invitation.',
        ],
  sent: ({ server }) => [`The mail was sent to ${server}.`],
  refused: ({ server, failure, invitation_id }) => [
    `The mail was rejected by ${server}: ${failure}`,
    `It is not sent again. Send a new one: coffer invite resend ${quoteWord(invitation_id)}`,
  ],
  dropped: () => ['The mail was not sent, because its link had ended.'],
}
