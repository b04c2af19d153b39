/**
 * A seed describes the contents of tenants. The whole seed is checked first, and then written in one unit of
 * work.
 */
import { API_KEY } from '../../domain/access/application.js'
import { DEFAULT_ROLE } from '../../domain/access/permissions.js'
import { ITEM_OF_BATCH_STEPS } from '../../domain/expression/budget.js'
import { type Lenient, omitUndefined } from '../../domain/omit-undefined.js'
import { addError, collectBelow, refuseErrors } from '../../domain/property-errors.js'
import { BASE58_RULE, isKey } from '../../domain/text/base58.js'
import { isTestKey, TEST_KEY_RULE } from '../../domain/text/chosen-key.js'
import { CofferError, invalid, type PropertyErrors } from '../../errors.js'
import type { AuditEntry } from '../../framework/audit-entry.js'
import { ownerCaller } from '../../framework/caller/caller.js'
import type { Context, Session } from '../../framework/context.js'
import { type CheckTools, type LogEntry, owner } from '../../framework/declaration.js'
import { type AnyOf, detached } from '../../framework/operation.js'
import { arrayOf, count, object, text, uuid } from '../../framework/output.js'
import { closedInput } from '../../framework/schema.js'
import { writeLog } from '../../framework/unit.js'
import type { ApplicationView } from '../application/application-record.js'
import { addApplication, createApplication } from '../application/noun.js'
import { addFormula, createFormula, VAULT_TENANT } from '../formula/noun.js'
import { addInvitation, createInvitation } from '../invite/noun.js'
import { addMember, isMember } from '../member/noun.js'
import { addProxy, createProxy } from '../proxy/noun.js'
import type { FindBuild } from '../reactor/build.js'
import { addReactor, createReactor } from '../reactor/reactor.js'
import { updateTenant } from '../tenant/noun.js'
import { createTenant } from '../tenant/tenant-create.js'
import { createToken, linkTokens } from '../token/noun.js'
import { addWebhook, createWebhook, type WebhookAttributes } from '../webhook/noun.js'
import { refusalOf } from '../webhook/waiting.js'
import { checkReferences, createFinder, keepName, refer } from './references.js'
import { checkAttributes, type Item, isOwner, readItem } from './seed-items.js'
import { type ListName, type Seed, type SeedContents, seedSchema } from './seed-schema.js'

export const applySeed = detached({
  name: 'seed apply',
  plaintext: 'refused',
  access: owner,
  summary: 'Create the contents of a seed, in your tenant and in further tenants.',
  details:
    'A seed is JSON: applications, formulas, tokens, associations, reactors, proxies, webhooks, members and invitations of\n' +
    'the tenant, and further tenants with their own lists. Everything is created, or nothing. An item has the attributes of\n' +
    'the command that creates the record, or of the answer of the API. Attributes that the server sets are ignored. Keys of\n' +
    'applications are shown only once. In a vault in memory, a seed may choose the keys. A key is\n' +
    `${API_KEY} and 22 characters of ${BASE58_RULE}.`,
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
    const steps = parts.flatMap((part) => part.steps)
    for (const { at, list, item } of steps)
      if (item.key !== undefined) await within(`${at}.key`, async () => admitKey(session, list, item))
    await findRefusals(session, steps)
    return session.inUnit(async (context) => {
      const done = []
      for (const part of parts) {
        const own = part.place === 'seed' ? context : await enterNew(context, part)
        done.push(await fill(own, part, session.traceId))
      }
      return done
    })
  },
})

interface List {
  operation: Pick<AnyOf<'change'>, 'check' | 'log'>
  create(context: Context, item: never, checked: never): Promise<unknown>
}

type ItemOf<L extends ListName> = NonNullable<SeedContents[L]>[number]

/** The records are created in the order of these lists. */
const LISTS: Readonly<Record<ListName, List>> = {
  applications: {
    operation: createApplication,
    create: (context, { id, key, ...input }: ItemOf<'applications'>, expires) =>
      addApplication(context, input, expires, { id, key }),
  },
  formulas: { operation: createFormula, create: seedFormula },
  tokens: { operation: createToken, create: async (...creation) => createToken.run(...creation) },
  associations: { operation: linkTokens, create: async (...creation) => linkTokens.run(...creation) },
  reactors: { operation: createReactor, create: seedReactor },
  proxies: { operation: createProxy, create: seedProxy },
  members: {
    operation: { ...createInvitation, log: { operation: 'create', message: 'Member created' } },
    create: seedMember,
  },
  invitations: { operation: createInvitation, create: addInvitation },
  webhooks: {
    operation: createWebhook,
    create: (context, { id, status }: ItemOf<'webhooks'>, { attributes, failure }: CheckedWebhook) =>
      addWebhook(context, attributes, { id, status, failure }),
  },
}

interface CheckedWebhook {
  attributes: WebhookAttributes
  failure: string | undefined
}

export interface Step {
  at: string
  list: ListName
  item: Item
  checked: unknown
}

export interface Part {
  place: string
  contents: SeedContents
  steps: Step[]
}

/** @throws CofferError `validation` with the place of every error */
async function checkSeed({ tenants = [], ...own }: Lenient<Seed>, tools: CheckTools): Promise<Part[]> {
  const errors: PropertyErrors = {}
  const parts: Part[] = []
  for (const [index, contents = {}] of [own, ...tenants].entries()) {
    const place = index === 0 ? 'seed' : `seed.tenants[${index - 1}]`
    const steps: Step[] = []
    parts.push({ place, contents: contents as SeedContents, steps })
    if (contents.name !== undefined)
      await collectBelow(errors, place, async () => updateTenant.check?.({ name: contents.name }, tools))
    const names = new Set<unknown>()
    for (const list of Object.keys(LISTS) as ListName[]) {
      const items = (contents[list] ?? []) as readonly (Item | undefined)[]
      checkAttributes(list, items, place, errors)
      for (const [index, given = {}] of items.entries()) {
        if (isOwner(list, given)) continue
        if (tools.turns.use(ITEM_OF_BATCH_STEPS)) await tools.turns.next()
        const at = `${place}.${list}[${index}]`
        const item = readItem(list, given)
        checkOwn(list, item, { at, names, errors })
        const check = async () => LISTS[list].operation.check?.(await refer(item, keepName), tools)
        steps.push({ at, list, item, checked: await collectBelow(errors, at, check) })
      }
    }
  }
  refuseErrors(errors)
  return parts
}

/** Checks the rules that apply only to seeds. */
function checkOwn(
  list: ListName,
  item: Item,
  { at, names, errors }: { at: string; names: Set<unknown>; errors: PropertyErrors },
): void {
  const { id, key, name, email } = item
  checkReferences(item, at, errors)
  if (list === 'applications') {
    if (id === undefined && names.has(name))
      addError(errors, `${at}.name`, 'is the name of another application')
    names.add(name)
    // Later, `admitChosenKey` refuses test keys that this vault does not accept.
    if (key !== undefined && !isKey(String(key), API_KEY) && !isTestKey(String(key)))
      addError(
        errors,
        `${at}.key`,
        `must be ${API_KEY} and 22 characters of ${BASE58_RULE}; with serve --test-keys, another key ${TEST_KEY_RULE}`,
      )
  }
  if (list === 'proxies' && key !== undefined && !isKey(String(key)))
    addError(errors, `${at}.key`, `must be 22 characters of ${BASE58_RULE}`)
  if (list === 'members' && email === undefined) addError(errors, `${at}.email`, 'is required')
}

async function enterNew(context: Context, { place, contents }: Part): Promise<Context> {
  const { store, createUuid } = context
  const keys = context.vault().generateTenantKeys()
  const create = () => createTenant(store, { name: contents.name!, keys, createUuid })
  const { number, owner_id } = await within(place, create)
  return context.as(ownerCaller(number, owner_id, { reveal: false }), null)
}

/**
 * Checks a chosen key that gives access by itself: the key of an application, or of a proxy that needs no API key.
 * Every vault accepts the keys of other proxies, so that a seed from one vault on disk can be applied to another vault.
 */
function admitKey(session: Session, list: ListName, item: Item): void {
  if (list === 'applications') session.vault().admitChosenKey(String(item.key))
  else if (list === 'proxies' && item.require_auth === false) session.vault().admitChosenProxyKey()
}

/** Adds to each webhook the reason why the server is not allowed to call its address, if there is a reason. */
async function findRefusals(session: Session, steps: readonly Step[]): Promise<void> {
  for (const step of steps) {
    if (step.list !== 'webhooks') continue
    const attributes = step.checked as WebhookAttributes
    step.checked = { attributes, failure: refusalOf(await session.outbound(), attributes.url) }
  }
}

async function fill(own: Context, { contents, steps }: Part, traceId: string) {
  const before = await own.tenant()
  const { name = before.name, settings } = contents
  const applications: ApplicationView[] = []
  const find = createFinder(own)
  const createAll = async (wanted: readonly Step[], recorded: AuditEntry[]) => {
    const loggedAs = (log: LogEntry | undefined) => own.as(own.caller, log ?? null, recorded)
    for (const { at, list, item, checked } of wanted) {
      if (own.turns.use(ITEM_OF_BATCH_STEPS)) await own.turns.next()
      const { operation, create } = LISTS[list]
      const made = await within(at, async () =>
        create(loggedAs(operation.log), (await refer(item, find)) as never, checked as never),
      )
      if (list === 'applications') applications.push(made as ApplicationView)
    }
    await writeLog(own, recorded, traceId)
  }
  const recorded: AuditEntry[] = []
  if (settings !== undefined || name !== before.name) {
    const context = own.as(own.caller, updateTenant.log ?? null, recorded)
    await updateTenant.run(context, { name, ...(settings && { settings }) }, undefined)
  }
  await createAll(
    steps.filter(({ list }) => list !== 'webhooks'),
    recorded,
  )
  // Webhooks are created last, after the log of the other records is written. Therefore a webhook gets no
  // events about records of its own seed.
  await createAll(
    steps.filter(({ list }) => list === 'webhooks'),
    [],
  )
  const shown = applications.map(({ id, name, type, key }) => ({ id, name, type, key: key! }))
  return { id: before.id, name, applications: shown, tokens: contents.tokens?.length ?? 0 }
}

/** An official formula that the vault already has is not changed, because official formulas belong to all tenants. */
async function seedFormula(context: Context, { id, ...input }: ItemOf<'formulas'>): Promise<unknown> {
  const isKnown = input.type === 'official' && id !== undefined
  const known = isKnown ? await context.store.get('formula', VAULT_TENANT, id) : undefined
  return known ?? addFormula(context, input, id)
}

/** In this type, references by name are already replaced with ids. */
type Referring<L extends 'reactors' | 'proxies'> = Omit<ItemOf<L>, 'application' | 'formula'> &
  Partial<Record<'application' | 'formula', { id: string }>>

async function seedReactor(
  context: Context,
  { id, ...input }: Referring<'reactors'>,
  findBuild: FindBuild,
): Promise<unknown> {
  return addReactor(context, input, findBuild, id)
}

async function seedProxy(
  context: Context,
  { id, key, ...input }: Referring<'proxies'>,
  findBuild: FindBuild,
): Promise<unknown> {
  return addProxy(context, input, findBuild, { id, key })
}

async function seedMember(
  { store, caller, createUuid, tenant, audit }: Context,
  { role = DEFAULT_ROLE, email = '', first_name, last_name }: ItemOf<'members'>,
): Promise<void> {
  if (await isMember(store, caller.tenant, email))
    throw invalid('email', 'is already the address of a member')
  const made = { email, ...omitUndefined({ first_name, last_name }), role, createdBy: caller.actor.id }
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
