/** `coffer invite outbox | accept | create | resend`: mail as its reader sees it, and where it went. */
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { OutboxLetter, OutboxMail } from '../../operations/invite/outbox.js'
import type { CommandContext } from '../context/context.js'
import type { Steps } from '../context/task.js'
import { displayLines } from '../output/display.js'
import { printNotice, printWarning } from '../output/output.js'
import { write } from '../output/terminal.js'

/** One mail on a terminal is shown as its reader would see it. */
export const outbox: Steps = {
  run: async ({ context, input, format, ask, print }) => {
    const result = await ask()
    if (input.id === undefined || format !== 'table' || context.config.fields !== undefined)
      return print(result)
    const { to, subject, text, state, ...rest } = result as OutboxLetter
    const { terminal } = context
    await write(terminal.stdout, displayLines(`To: ${to}\nSubject: ${subject}\n\n${text}`))
    await printNotice(terminal, STATES[state]({ to, subject, state, ...rest })[0])
  },
}

/** The link is asked for, or comes on standard input, so that no other process sees it. */
export const accept: Steps = {
  gather: async (context, [given], { firstName, lastName }) =>
    omitUndefined({ link: await readLinkText(context, given), first_name: firstName, last_name: lastName }),
}

async function readLinkText({ terminal, input }: CommandContext, given: string | undefined): Promise<string> {
  if (given === undefined && terminal.mayPrompt) {
    const { ask } = await import('../input/prompt.js')
    return ask(terminal, { message: 'Invitation link', missing: 'the link' })
  }
  return input.readValue(given ?? '-', 'the link')
}

/** Tells the owner what became of the mail of an invitation, and its link as long as it is here. */
export const mail: Steps = {
  run: async ({ context, key, ask, print, together }) => {
    const { terminal } = context
    const [invitation, letter] = await together(async () => {
      const result = (await ask()) as { id: string }
      if (key !== undefined) return [result]
      return [result, (await ask({ id: result.id, wait: true }, 'invite outbox')) as OutboxMail] as const
    })
    await print(invitation)
    if (letter === undefined) return
    const tell = letter.failure === undefined ? printNotice : printWarning
    await tell(terminal, describeMail(letter))
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
