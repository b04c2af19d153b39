import { omitUndefined } from '../../domain/omit-undefined.js'
import { quoteWord } from '../../domain/text/quote-word.js'
import { CofferError } from '../../errors.js'
import type { List } from '../../framework/page.js'
import type { ResultOf } from '../../operations/all.js'
import type { OutboxLetter, OutboxMail } from '../../operations/invite/noun.js'
import { displayLines } from '../output/display.js'
import { printWarning } from '../output/output.js'
import { write } from '../output/terminal.js'
import type { Hooks, Presentations, Task } from '../task.js'

/** The largest page. A new invitation is compared with at most this number of pending invitations. */
const MAX_PENDING = 100

const showOutbox: Hooks = {
  run: async (task, usual) => {
    const { context, input, format, ask, notice } = task
    if (input.id === undefined || format !== 'table' || context.config.fields !== undefined)
      return usual!(task)
    const mail = (await ask()) as OutboxLetter
    const head = `To: ${mail.to}\nSubject: ${mail.subject}`
    await write(context.terminal.stdout, displayLines(`${head}\n\n${mail.text}`))
    await notice(describeState(mail)[0]!)
  },
}

/** Without an argument, the link is read from a prompt or standard input, because other processes can see arguments. */
const acceptInvitation: Hooks = {
  gather: async (context, [given], { firstName, lastName }) =>
    omitUndefined({
      link: await context.input.readGiven(context, given, 'the link', { message: 'Invitation link' }),
      first_name: firstName,
      last_name: lastName,
    }),
}

/** The owner also sees the state of the mail, and its link if this link is stored. */
const mailInvitation: Hooks = {
  run: async (task) => void (await inviteByMail(task)),
}

/**
 * Warns if another invitation for the same address is pending, because the person may have wanted to resend that
 * invitation.
 */
const createInvitation: Hooks = {
  run: async (task) => {
    const { id, email } = await inviteByMail(task)
    const other = (await listPending(task)).find(
      (each) => each.id !== id && each.email.toLowerCase() === email.toLowerCase(),
    )
    if (other === undefined) return
    const text =
      'This address has another pending invitation, and the links of both work. Delete the other one: ' +
      `coffer invite delete ${other.id}. To send an invitation again, use coffer invite resend instead.`
    await printWarning(task.context.terminal, text)
  },
}

type Invitation = ResultOf<'invite create'>

async function inviteByMail({ context, key, ask, print, notice, withOpenVault }: Task): Promise<Invitation> {
  const [invitation, letter] = await withOpenVault(async () => {
    const result = (await ask()) as Invitation
    if (key !== undefined) return [result]
    return [result, (await ask({ id: result.id, wait: true }, 'invite outbox')) as OutboxMail] as const
  })
  await print(invitation)
  if (letter === undefined) return invitation
  const { link, failure } = letter
  const [where, ...advice] = describeState(letter)
  const text = [where, ...(link === undefined ? [] : [`Link: ${link}`]), ...advice].join('\n')
  await (failure === undefined ? notice(text) : printWarning(context.terminal, text))
  return invitation
}

/** Returns an empty list after an error, because the new invitation exists and the command must not fail. */
async function listPending({ ask }: Task): Promise<readonly Invitation[]> {
  const found = ask({ status: 'PENDING', size: MAX_PENDING }, 'invite list') as Promise<List<Invitation>>
  const { data } = await found.catch((error: unknown) => {
    if (error instanceof CofferError) return { data: [] }
    throw error
  })
  return data
}

function describeState({ id, state, server, failure, invitation_id = '' }: Omit<OutboxMail, 'link'>) {
  const again = 'Coffer tries again while coffer serve runs, and when you create the next invitation.'
  const texts: Record<OutboxMail['state'], [where: string, advice?: string]> = {
    dropped: ['The mail was not sent, because its link had expired.'],
    sent: [`The mail was sent to ${server}.`],
    outbox: [
      'No mail server is configured, so the mail stays in the outbox.',
      `Read it: coffer invite outbox ${quoteWord(id)}`,
    ],
    refused: [
      `The mail was rejected by ${server}: ${failure}`,
      `It is not sent again. Send a new one: coffer invite resend ${quoteWord(invitation_id)}`,
    ],
    waiting:
      failure === undefined
        ? ['The mail is waiting to be sent.']
        : [`The mail could not be sent to ${server}: ${failure}`, again],
  }
  return texts[state]
}

export const presentations: Presentations = {
  'invite create': { hooks: createInvitation },
  'invite resend': { hooks: mailInvitation },
  'invite outbox': {
    empty: 'No mail yet. Invite a person: coffer invite create --help',
    hooks: showOutbox,
  },
  'invite accept': {
    arguments: [['[link]', 'the link in the mail, or its token; - reads standard input']],
    options: [
      ['--first-name <text>', 'their first name'],
      ['--last-name <text>', 'their last name'],
    ],
    hooks: acceptInvitation,
  },
}
