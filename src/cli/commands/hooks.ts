import { parseJson } from '../../domain/json/json.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { requireSettingName, type SettingView, VAULT_SETTINGS } from '../../domain/settings.js'
import { quoteWord } from '../../domain/text/quote-word.js'
import { CofferError } from '../../errors.js'
import type { List } from '../../framework/page.js'
import type { Verification } from '../../framework/ports/vault.js'
import type { ResultOf } from '../../operations/all.js'
import type { ApplicationView } from '../../operations/application/application-record.js'
import type { OutboxLetter, OutboxMail } from '../../operations/invite/noun.js'
import type { TenantView } from '../../operations/tenant/noun.js'
import { readHolder } from '../../vault/offline.js'
import { countOf, displayLines } from '../output/display.js'
import { printWarning } from '../output/output.js'
import { write } from '../output/terminal.js'
import { describePlace, findVaultDirectory, placeOf } from '../target/place.js'
import { findTenantChoice, rememberTenant } from '../target/vault.js'
import type { Hooks, Task } from '../task.js'

/** Invitations that are compared with a new one: the largest page. */
const MAX_PENDING = 100

/** Digits in --data are a number unless the token's data is text, so a refused number is sent again as text. */
export const updateToken: Hooks = {
  run: async (task, usual) => {
    const { input } = task
    const askAgain = (error: unknown) => {
      const isRefused = error instanceof CofferError && error.errors?.data !== undefined
      if (!isRefused || !Number.isSafeInteger(input.data)) throw error
      return task.ask({ ...input, data: String(input.data) })
    }
    const ask: Task['ask'] = (...given) => {
      const asked = task.ask(...given)
      return given.length === 0 ? asked.catch(askAgain) : asked
    }
    await usual!({ ...task, ask })
  },
}

/** An agent may store, find and use values with these, and sees all of them masked. */
const AGENT_PERMISSIONS = ['token:create', 'token:read', 'token:search', 'token:use']

export const createAgent: Hooks = {
  gather: async (_, __, { agent: name }) => {
    if (name === undefined) return undefined
    const rule = { priority: 1, container: '/', transform: 'mask', permissions: AGENT_PERMISSIONS }
    return { name, type: 'private', rules: [rule] }
  },
}

/** Says what becomes of the old keys: before, and when they have a grace time also after it. */
export const regenerateKeys: Hooks = {
  confirm: async ({ args, input, context }) => {
    const { grace } = input
    const names = args.join(', ')
    const old =
      grace === undefined ? 'are refused immediately' : `work for ${grace} more, and are refused then`
    const what =
      args.length === 1 ? `the keys of application ${names}` : `the keys of these applications: ${names}`
    const { confirm } = await import('../input/prompt.js')
    await confirm(context.terminal, `This makes a new key and replaces ${what}. The old keys ${old}. Go on?`)
  },
  run: async (task, usual) => {
    let made: Partial<ApplicationView> = {}
    const print: Task['print'] = async (result, ...how) => {
      made = result as ApplicationView
      await task.print(result, ...how)
    }
    await usual?.({ ...task, print })
    const { name = '', keys = [] } = made
    const old = keys.filter(({ expires_at }) => expires_at !== undefined)
    if (old.length === 0) return
    const last = old
      .map(({ expires_at }) => expires_at!)
      .sort()
      .at(-1)!
    const [until, id] = old.length === 1 ? [last, old[0]!.id] : [`${last} at the latest`, 'KEY-ID']
    const which = old.length === 1 ? 'The old key works' : 'The old keys work'
    await task.notice(
      `${which} until ${until}. To revoke one earlier: coffer app key delete ${quoteWord(name)} ${id}`,
    )
  },
}

export const setSetting: Hooks = {
  gather: async (context, [name = '', given]) => {
    const isSecret = 'conceal' in VAULT_SETTINGS[requireSettingName(name)]
    return { name, value: await context.input.readGiven(context, given, name, { isSecret }) }
  },
  run: async (task) => {
    const { input, ask, print, notice } = task
    if (input.value !== 'true') await confirmReveal(task)
    await print(await ask())
    if (input.name !== 'mail.url') return
    const { is_set } = (await ask({ name: 'public_url' }, 'config get')) as SettingView
    if (!is_set)
      await notice(
        'Links in mail point to this machine until you set its public URL: coffer config set public_url https://…',
      )
  },
}

export const unsetSetting: Hooks = {
  run: async (task) => {
    await confirmReveal(task)
    await task.print(await task.ask())
  },
}

async function confirmReveal({ input, context: { terminal } }: Task): Promise<void> {
  if (input.name === 'no_reveal') await (await import('../input/prompt.js')).confirmReveal(terminal)
}

export const applySeed: Hooks = {
  gather: async ({ input }, [path = '-']) => {
    const source = path === '-' ? 'standard input' : path
    return { seed: parseJson(await input.readFile(path, path === '-' ? source : 'the seed'), { source }) }
  },
}

const BACKUPS = 'Earlier backups contain their own keys, so their data of this tenant remains readable.'

const isNamed = ({ id, name }: TenantView, choice: string) =>
  id === choice || name.toLowerCase() === choice.toLowerCase()

export const createTenant: Hooks = {
  run: async ({ ask, print, notice }) => {
    const tenant = (await ask()) as TenantView
    await print(tenant)
    await notice(`Select it with --tenant, or make it the default: coffer tenant use ${tenant.id}`)
  },
}

export const listTenants: Hooks = {
  run: async ({ context, ask, print }) => {
    const choice = await findTenantChoice(context)
    const tenants = (await ask()) as TenantView[]
    const used = choice === undefined ? tenants.at(-1) : tenants.find((tenant) => isNamed(tenant, choice))
    await print(tenants.map((tenant) => ({ ...tenant, is_used: tenant === used })))
    if (choice !== undefined && used === undefined)
      await printWarning(
        context.terminal,
        'The default tenant does not exist any more. Choose another: coffer tenant use NAME',
      )
  },
}

export const useTenant: Hooks = {
  run: async ({ context, ask, print }) => {
    const tenant = (await ask()) as TenantView
    await rememberTenant(context, tenant.id)
    await print(tenant)
  },
}

/** Asks for the name of the tenant before deleting it, and warns that backups still contain its data. */
export const deleteTenant: Hooks = {
  confirm: async ({ context: { terminal }, key, ask, askAsOwner, withOpenVault }) => {
    // Read as the owner, because an application may have the permission to delete its tenant but not to read it.
    const { name } = (await withOpenVault(async () => {
      const { tenant_id } = (key === undefined ? {} : await ask({}, 'app whoami')) as { tenant_id?: string }
      return askAsOwner('tenant get', {}, tenant_id)
    })) as TenantView
    const prompt = await import('../input/prompt.js')
    const danger = `This deletes the tenant "${name}" with all of its tokens, applications and logs.`
    if (terminal.mayPrompt) await printWarning(terminal, `${danger} ${BACKUPS}`)
    const message = 'Type the name of the tenant to delete it:'
    if ((await prompt.ask(terminal, { message, missing: '--yes' })) !== name)
      throw new CofferError('interrupted', 'The name does not match. Nothing was changed.')
  },
  run: async ({ context, ask, askAsOwner, print, notice }) => {
    await print(await ask())
    await notice(BACKUPS)
    const choice = await findTenantChoice(context)
    if (choice === undefined || context.config.tenant !== undefined) return
    const tenants = (await askAsOwner('tenant list', {})) as TenantView[]
    if (!tenants.some((tenant) => isNamed(tenant, choice))) await rememberTenant(context, undefined)
  },
}

/** By its id one delivery is printed with its payload and answer, which a table lacks. */
export const showDeliveries: Hooks = {
  view: (answer, { input }) => {
    const { data = [] } = answer as Partial<ResultOf<'webhook deliveries'>>
    return data.find(({ id }) => id === input.id) ?? answer
  },
}

/** On a terminal one mail is printed as a letter. */
export const showOutbox: Hooks = {
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

/** Reads the link from a prompt or standard input, so that other processes cannot see it. */
export const acceptInvitation: Hooks = {
  gather: async (context, [given], { firstName, lastName }) =>
    omitUndefined({
      link: await context.input.readGiven(context, given, 'the link', { message: 'Invitation link' }),
      first_name: firstName,
      last_name: lastName,
    }),
}

/** Also prints the delivery state of the invitation's mail, and its link if stored, for the owner. */
export const mailInvitation: Hooks = {
  run: async (task) => void (await inviteByMail(task)),
}

/** The interface allows several invitations for an address. A person who invites twice rather wants to send the mail again. */
export const createInvitation: Hooks = {
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

/** The newest pending invitations. The invitation is made: if they cannot be listed, there is nothing to compare it with. */
async function listPending({ ask }: Task): Promise<readonly Invitation[]> {
  const found = ask({ status: 'PENDING', size: MAX_PENDING }, 'invite list') as Promise<List<Invitation>>
  const { data } = await found.catch((error: unknown) => {
    if (error instanceof CofferError) return { data: [] }
    throw error
  })
  return data
}

const RECOVERING = 'Restore a backup, or copy what can be read: coffer vault copy --skip-damaged --to NEW'

export const showStatus: Hooks = {
  run: async ({ context, ask, print }) => {
    const place = findVaultDirectory(context)
    const held_by = context.config.store === undefined ? readHolder(placeOf(context)) : undefined
    const found = omitUndefined({ held_by })
    await print({ ...describePlace(place), ...found, ...((await ask()) as object) })
  },
}

export const backUpVault: Hooks = {
  run: async ({ ask, print, notice }) => {
    await print(await ask())
    await notice(
      'To open the backup, you need a key file or passphrase that opens the vault now. Keep one in a safe place.',
    )
  },
}

/** @throws CofferError `vault_damaged` after printing the findings */
export const verifyVault: Hooks = {
  run: async ({ ask, print }) => {
    const result = (await ask()) as Verification
    await print(result)
    if (result.findings.length === 0) return
    const { records, logs } = result.readable
    throw new CofferError(
      'vault_damaged',
      `The vault is damaged; ${countOf(records, 'record')} and ${countOf(logs, 'log record')} can still be read. ${RECOVERING}`,
    )
  },
}

/** Says whether the mail was delivered, and what to do next. */
function describeState({ id, state, server, failure, invitation_id = '' }: Omit<OutboxMail, 'link'>) {
  const again = 'It is sent again while coffer serve runs, and with the next invitation.'
  const texts: Record<OutboxMail['state'], [where: string, advice?: string]> = {
    dropped: ['The mail was not sent, because its link had ended.'],
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
