/**
 * A seed describes the contents of tenants. One unit of work writes it. Before the first write, the whole
 * seed is checked.
 */
import { API_KEY } from '../../domain/access/application.js'
import { DEFAULT_ROLE } from '../../domain/access/permissions.js'
import { ITEM_OF_BATCH_STEPS } from '../../domain/expression/budget.js'
import type { Lenient } from '../../domain/omit-undefined.js'
import { addError, collectBelow, refuseErrors } from '../../domain/property-errors.js'
import { BASE58_RULE, isKey } from '../../domain/text/base58.js'
import { isTestKey, TEST_KEY_RULE } from '../../domain/text/chosen-key.js'
import { MAX_NAME_LENGTH } from '../../domain/text/display-name.js'
import { CofferError, invalid, type PropertyErrors } from '../../errors.js'
import type { AuditEntry } from '../../framework/audit-entry.js'
import { ownerCaller } from '../../framework/caller/caller.js'
import type { Context } from '../../framework/context.js'
import { type CheckTools, type LogEntry, owner } from '../../framework/declaration.js'
import { type AnyOf, detached } from '../../framework/operation.js'
import { arrayOf, count, object, text, uuid } from '../../framework/output.js'
import { closedInput, type Infer, inputSchema, type ObjectSchema } from '../../framework/schema.js'
import { writeLog } from '../../framework/unit.js'
import { readAll } from '../../storage/store.js'
import type { ApplicationView } from '../application/application-record.js'
import { addApplication, createApplication } from '../application/noun.js'
import { createFormula, VAULT_TENANT } from '../formula/noun.js'
import { addInvitation, createInvitation } from '../invite/noun.js'
import { addMember, isMember } from '../member/noun.js'
import { createProxy } from '../proxy/noun.js'
import { createReactor } from '../reactor/reactor.js'
import { updateTenant } from '../tenant/noun.js'
import { createTenant } from '../tenant/tenant-create.js'
import { createToken, linkTokens } from '../token/noun.js'

export const MAX_SEEDED_TOKENS = 10_000
const MAX_OTHERS = 1000

const { create_key: _, ...applicationProperties } = createApplication.input.properties
const { settings, name: tenantName } = updateTenant.input.properties
const name = { type: 'string', minLength: 1, maxLength: MAX_NAME_LENGTH } as const
const application = { ...name, description: 'The name of an application of this tenant.' } as const

/** The items of these lists refuse unknown properties, because such a name is probably misspelled. */
function seedList<const I extends ObjectSchema>(items: I, maxItems = MAX_OTHERS) {
  const { additionalProperties: _, ...others } = items
  return { type: 'array', items: { ...others, additionalProperties: false }, maxItems } as const
}

const contentsSchema = {
  settings,
  applications: seedList({
    ...createApplication.input,
    properties: {
      ...applicationProperties,
      key: {
        type: 'string',
        sensitive: true,
        description: `In a vault in memory: ${API_KEY} and 22 characters of ${BASE58_RULE}, or any key with serve --test-keys; default: a random key.`,
      },
    },
  } as const),
  formulas: seedList(createFormula.input),
  tokens: seedList(createToken.input, MAX_SEEDED_TOKENS),
  associations: seedList(linkTokens.input),
  reactors: seedList(
    closedInput(['name'], {
      ...createReactor.input.properties,
      formula: { ...name, description: 'The name of a formula of this tenant, or of an official one.' },
      application,
    }),
  ),
  proxies: seedList({
    ...createProxy.input,
    properties: { ...createProxy.input.properties, application },
  } as const),
  members: seedList(
    inputSchema(['email'], {
      ...createInvitation.input.properties,
      first_name: { type: 'string', maxLength: 200 },
      last_name: { type: 'string', maxLength: 200 },
    }),
  ),
  invitations: seedList(createInvitation.input),
} as const

const schema = {
  ...closedInput([], {
    name: tenantName,
    ...contentsSchema,
    tenants: seedList(closedInput(['name'], { name: tenantName, ...contentsSchema }), 100),
  }),
  sensitive: true,
  description: 'The contents of the tenant, and further tenants.',
} as const

type Schema = typeof schema
/** With its own name, the type is not repeated in the type declarations of the package. */
export interface SeedSchema extends Schema {}
export const seedSchema: SeedSchema = schema
export type Seed = Infer<typeof seedSchema>
export type SeedContents = Omit<Seed, 'tenants'>

export const applySeed = detached({
  name: 'seed apply',
  plaintext: 'refused',
  access: owner,
  summary: 'Create the contents of a seed, in your tenant and in further tenants.',
  details:
    'A seed is JSON: applications, formulas, tokens, associations, reactors, proxies, members and invitations of the tenant, and\n' +
    'further tenants with their own lists. Everything is created, or nothing. Keys of applications are shown only once; in a vault\n' +
    `in memory a seed may choose them: ${API_KEY} and 22 characters of ${BASE58_RULE}.`,
  input: closedInput(['seed'], { seed: seedSchema }),
  output: arrayOf(
    object({
      id: uuid,
      name: text,
      applications: arrayOf(object({ id: uuid, name: text, type: text, key: text })),
      tokens: count,
    }),
  ),
  cli: { positionals: ['seed'], columns: ['name', 'id', 'tokens'] },
  examples: [`echo '{"tokens":[{"id":"grace","type":"token","data":"x"}]}' | coffer seed apply -`],
  log: { operation: 'update', message: 'Seed applied' },
  check: ({ seed }, tools) => checkSeed(seed ?? {}, tools),
  async run(session, _, parts) {
    for (const { at, item } of parts.flatMap(({ steps }) => steps))
      if (item.key !== undefined)
        await within(`${at}.key`, async () => session.vault().admitChosenKey(String(item.key)))
    return session.inUnit(async (context) => {
      const done = []
      for (const part of parts) {
        const recorded: AuditEntry[] = []
        const own = part.place === 'seed' ? context : await enterNew(context, part)
        done.push(await fill(own, part, recorded))
        await writeLog(own, recorded, session.traceId)
      }
      return done
    })
  },
})

type Item = Readonly<Record<string, unknown>>
export type ListName = Exclude<keyof SeedContents, 'name' | 'settings'>

interface List {
  /** `check` validates each item. `log` is the log entry of each creation. */
  operation: Pick<AnyOf<'change'>, 'check' | 'run' | 'log'>
  /** The default is `run`. `checked`: the result of the check. */
  create?(context: Context, item: never, checked: never): Promise<unknown>
}

/** The lists of a seed, in the order in which they are created. */
const LISTS: Readonly<Record<ListName, List>> = {
  applications: {
    operation: createApplication,
    create: (context, { key, ...input }: NonNullable<SeedContents['applications']>[number], expires) =>
      addApplication(context, input, expires, key),
  },
  formulas: { operation: createFormula },
  tokens: { operation: createToken },
  associations: { operation: linkTokens },
  reactors: { operation: createReactor },
  proxies: { operation: createProxy },
  members: {
    operation: { ...createInvitation, log: { operation: 'create', message: 'Member created' } },
    create: seedMember,
  },
  invitations: { operation: createInvitation, create: addInvitation },
}

export interface Part {
  place: string
  contents: SeedContents
  steps: { at: string; list: List; item: Item; checked: unknown }[]
}

/** @throws CofferError `validation` with the place of every error */
async function checkSeed({ tenants = [], ...own }: Lenient<Seed>, tools: CheckTools): Promise<Part[]> {
  const errors: PropertyErrors = {}
  const parts: Part[] = []
  for (const [index, contents = {}] of [own, ...tenants].entries()) {
    const place = index === 0 ? 'seed' : `seed.tenants[${index - 1}]`
    const steps: Part['steps'] = []
    parts.push({ place, contents: contents as SeedContents, steps })
    if (contents.name !== undefined)
      await collectBelow(errors, place, async () => updateTenant.check?.({ name: contents.name }, tools))
    const names = new Set<unknown>()
    for (const [name, list] of Object.entries(LISTS) as [ListName, List][]) {
      const items = (contents[name] ?? []) as readonly (Item | undefined)[]
      for (const [index, item = {}] of items.entries()) {
        if (tools.turns.use(ITEM_OF_BATCH_STEPS)) await tools.turns.next()
        const at = `${place}.${name}[${index}]`
        if (list === LISTS.applications) checkApplication(at, item, names, errors)
        const check = async () => list.operation.check?.(await refer(item, async (_, name) => name), tools)
        steps.push({ at, list, item, checked: await collectBelow(errors, at, check) })
      }
    }
  }
  refuseErrors(errors)
  return parts
}

function checkApplication(at: string, { key, name }: Item, names: Set<unknown>, errors: PropertyErrors) {
  if (names.has(name)) addError(errors, `${at}.name`, 'is the name of another application')
  names.add(name)
  // Before the first write, `admitChosenKey` also checks whether this vault accepts test keys.
  if (key !== undefined && !isKey(String(key), API_KEY) && !isTestKey(String(key)))
    addError(
      errors,
      `${at}.key`,
      `must be ${API_KEY} and 22 characters of ${BASE58_RULE}, or for serve --test-keys, it ${TEST_KEY_RULE}`,
    )
}

/**
 * Returns the item with ids instead of names of applications, formulas and reactors. `find` returns the id of
 * a name.
 */
async function refer(item: Item, find: (property: string, name: string) => Promise<string>): Promise<Item> {
  const referred: Record<string, unknown> = { ...item }
  for (const property of ['application', 'formula']) {
    const name = item[property]
    if (typeof name === 'string') referred[property] = { id: await find(property, name) }
  }
  for (const property of ['request_reactor_id', 'response_reactor_id']) {
    const name = item[property]
    if (typeof name === 'string' && name !== '') referred[property] = await find(property, name)
  }
  return referred
}

async function enterNew(context: Context, { place, contents }: Part): Promise<Context> {
  const { store, createUuid } = context
  const keys = context.vault().generateTenantKeys()
  const create = () => createTenant(store, { name: contents.name!, keys, createUuid })
  const { number, owner_id } = await within(place, create)
  return context.as(ownerCaller(number, owner_id, { reveal: false }), null)
}

async function fill(own: Context, { contents, steps }: Part, recorded: AuditEntry[]) {
  const loggedAs = (log: LogEntry | undefined) => own.as(own.caller, log ?? null, recorded)
  const before = await own.tenant()
  const { name = before.name, settings } = contents
  if (settings !== undefined || name !== before.name)
    await updateTenant.run(loggedAs(updateTenant.log), { name, ...(settings && { settings }) }, undefined)
  const applications: ApplicationView[] = []
  const reactors: { id: string; name: string }[] = []
  const find = async (property: string, named: string) => {
    const found =
      property === 'formula'
        ? await findFormula(own, named)
        : (property === 'application' ? applications : reactors).find(({ name }) => name === named)
    const noun = property.endsWith('reactor_id') ? 'reactor' : property
    if (found === undefined) throw invalid(property, `no ${noun} has this name`)
    return found.id
  }
  for (const { at, list, item, checked } of steps) {
    if (own.turns.use(ITEM_OF_BATCH_STEPS)) await own.turns.next()
    const { operation, create = operation.run } = list
    const made = await within(at, async () =>
      create(loggedAs(operation.log), (await refer(item, find)) as never, checked as never),
    )
    if (list === LISTS.applications) applications.push(made as ApplicationView)
    if (list === LISTS.reactors) reactors.push(made as (typeof reactors)[number])
  }
  const shown = applications.map(({ id, name, type, key }) => ({ id, name, type, key: key! }))
  return { id: before.id, name, applications: shown, tokens: contents.tokens?.length ?? 0 }
}

async function findFormula({ store, caller }: Context, name: string) {
  const [own, official] = [caller.tenant, VAULT_TENANT].map((tenant) => readAll(store, 'formula', tenant))
  return [...(await own!), ...(await official!)].find((formula) => formula.name === name)
}

async function seedMember(
  { store, caller, createUuid, tenant, audit }: Context,
  { role = DEFAULT_ROLE, ...person }: NonNullable<SeedContents['members']>[number],
): Promise<void> {
  if (await isMember(store, caller.tenant, person.email))
    throw invalid('email', 'is the address of a member already')
  const made = { ...person, role, createdBy: caller.actor.id }
  const member = await addMember(store, await tenant(), made, createUuid)
  audit.record('member', member.id)
}

async function within<T>(place: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof CofferError)) throw error
    const { code, status, message, errors: own } = error
    const entries = Object.entries(own ?? {}).map(([path, why]) => [`${place}.${path}`, why])
    const errors = own === undefined ? { [place]: [message] } : Object.fromEntries(entries)
    const detail = own === undefined ? `${place}: ${message}` : `${place}.${message}`
    throw new CofferError(code, detail, { status, errors, cause: error })
  }
}
