/** One run of an operation: asks the vault or a server as the caller of this run, and prints answers. */
import { omitUndefined } from '../domain/omit-undefined.js'
import { CofferError } from '../errors.js'
import { mayShareUnit, type OperationInput } from '../framework/operation.js'
import { resultOf } from '../framework/outcome.js'
import { PAGE_PROPERTIES } from '../framework/page.js'
import type { EachOutcome } from '../framework/perform-each.js'
import type { RegisteredOperation } from '../framework/registry.js'
import type { OperationRequest, Vault } from '../vault/vault.js'
import type { CommandContext } from './context.js'
import type { Form } from './input/form.js'
import { listFlags } from './input/options.js'
import { printNotice, printResult } from './output/output.js'
import { findTenantChoice } from './target/tenant-choice.js'
import type { Task } from './task.js'

const REPLAYED = 'Nothing was done: this is the answer to the first command with this idempotency key.'
/** How long a command that only reads purges expired tokens. */
const SWEEP_BY_READING_MS = 20

export type TaskFacts = Pick<
  Task,
  'context' | 'definition' | 'input' | 'options' | 'args' | 'format' | 'key'
> & {
  /** The notice for an empty list. */
  empty: string | undefined
  /** Another input for one that was refused; undefined if there is none. */
  correct?: Form['correct']
}

export function createTask({ empty, correct, ...facts }: TaskFacts): Task {
  const { context, definition, input, options, format, key } = facts
  const { terminal, config } = context
  const withOpenVault = createVaultAccess(context, definition)
  let chosen: Promise<string | undefined> | undefined
  const asOwner = async (tenant?: string): Promise<OperationRequest['as']> => {
    chosen ??= findTenantChoice(context)
    return { reveal: options.reveal === true, tenant: tenant ?? (await chosen) }
  }
  const asCaller = () => (key === undefined ? asOwner() : { key })
  const request = (asked: OperationRequest) =>
    withOpenVault(async (vault) => {
      const outcome = await vault.ask(asked)
      if (outcome.isReplayed && asked.idempotencyKey === options.idempotencyKey)
        await printNotice(terminal, REPLAYED)
      return outcome
    })
  const askOnline = async (asked: OperationInput, operation: string, repeatKey?: string) => {
    const idempotencyKey = operation === definition.name ? (options.idempotencyKey as string) : repeatKey
    const as = await asCaller()
    const send = async (input: OperationInput) =>
      resultOf(await request({ operation, input, as, ...omitUndefined({ idempotencyKey }) }))
    for (let now = asked; ; ) {
      try {
        return await send(now)
      } catch (error) {
        const corrected = operation === definition.name ? await correct?.(now, error) : undefined
        if (corrected === undefined) throw error
        now = corrected
      }
    }
  }
  const askOffline = async (asked: OperationInput) =>
    (await import('./target/offline.js')).askOffline(context, definition, asked)
  return {
    ...facts,
    ask: async (asked = input, operation = definition.name, repeatKey) => {
      if (operation !== definition.name || definition.runOffline === undefined)
        return askOnline(asked, operation, repeatKey)
      // There may be no vault yet.
      if ((definition.run ?? definition.runDetached) === undefined) return askOffline(asked)
      return askOnline(asked, operation).catch(async (error: unknown) => {
        if (!(error instanceof CofferError) || error.code !== 'vault_damaged') throw error
        await printNotice(terminal, `The vault cannot be opened: ${error.message} Reading what is readable…`)
        return askOffline(asked)
      })
    },
    ...(config.url === undefined &&
      mayShareUnit(definition) && {
        askEach: async (each: readonly OperationInput[]) => {
          const as = await asCaller()
          return (await request({ operation: definition.name, input: {}, each, as })).result as EachOutcome
        },
      }),
    askAsOwner: async (operation, asked, tenant) =>
      resultOf(await request({ operation, input: asked, as: await asOwner(tenant) })),
    withOpenVault,
    notice: (text) => printNotice(terminal, text),
    print: (result, other = format) =>
      printResult(terminal, result, {
        format: other,
        columns: definition.columns,
        fields: config.fields,
        known: true,
        hints: { ...hintsFor(facts), ...omitUndefined({ empty }) },
      }),
  }
}

/** Opens the vault for each request, or once for several, and purges expired tokens each time. */
function createVaultAccess(context: CommandContext, definition: RegisteredOperation) {
  let opened: Vault | undefined
  return async <T>(work: (vault: Vault) => Promise<T>, role?: 'command' | 'server'): Promise<T> => {
    if (opened !== undefined) return work(opened)
    return context.reachVault(async (vault) => {
      opened = vault
      try {
        const result = await work(vault)
        await sweepExpired(context, vault, definition)
        return result
      } finally {
        opened = undefined
      }
    }, role)
  }
}

/** A failure to purge does not make the command fail. */
async function sweepExpired({ terminal }: CommandContext, vault: Vault, { endpoint }: RegisteredOperation) {
  try {
    await vault.sweep(endpoint === undefined || endpoint.method === 'GET' ? SWEEP_BY_READING_MS : undefined)
  } catch (error) {
    const reason = error instanceof CofferError ? error.message : 'The reason is unknown.'
    const what = 'Expired tokens could not be purged; a later command will try again.'
    await printNotice(terminal, `${what} ${reason}`)
  }
}

function hintsFor({ context, definition, input }: Pick<Task, 'context' | 'definition' | 'input'>) {
  const { noun, output, destroys } = definition
  const isFiltered = listFlags(definition).some(
    ({ property }) => !PAGE_PROPERTIES.includes(property) && input[property] !== undefined,
  )
  const creator = context.registry.operations.find((other) => other.noun === noun && other.success === 201)
  const first = creator === undefined ? '' : ` Create one: coffer ${creator.name} --help`
  return {
    empty: isFiltered ? `No ${noun} matches these filters.` : `No ${noun}s yet.${first}`,
    done: output === undefined && destroys !== undefined ? 'Deleted.' : 'Done.',
  }
}
