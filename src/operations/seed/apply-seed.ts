/** Applies a seed: everything in it is checked before anything is written, and written in one unit of work. */
import { API_KEY } from '../../domain/access/application.js'
import { DEFAULT_ROLE } from '../../domain/access/roles.js'
import type { Lenient } from '../../domain/omit-undefined.js'
import { addError, collectBelow, refuseErrors } from '../../domain/property-errors.js'
import { isKey } from '../../domain/text/base58.js'
import { CofferError, invalid, type PropertyErrors } from '../../errors.js'
import { ownerCaller } from '../../framework/caller/caller.js'
import {
  type AnyOperation,
  type AuditEntry,
  type CheckTools,
  type Context,
  operation,
} from '../../framework/operation.js'
import { arrayOf, count, object, text, uuid } from '../../framework/output.js'
import { closedInput, type Infer } from '../../framework/schema.js'
import { writeLog } from '../../framework/unit.js'
import { readAll } from '../../storage/pages.js'
import { addApplication, createApplication } from '../application/application.js'
import { createFormula } from '../formula/formula.js'
import { addInvitation, createInvitation } from '../invite/invite.js'
import { addMember, isMember } from '../member/user.js'
import { createProxy } from '../proxy/proxy.js'
import { createReactor } from '../reactor/reactor.js'
import { updateTenant } from '../tenant/tenant.js'
import { createTenant } from '../tenant/tenant-create.js'
import { linkTokens } from '../token/association.js'
import { type CheckedRow, checkRows, loadRows } from '../token/load-tokens.js'
import { createToken } from '../token/token.js'
import { type Seed, type SeedContents, seedSchema } from './seed-schema.js'

const appliedOutput = arrayOf(
  object({
    id: uuid,
    name: text,
    applications: arrayOf(object({ id: uuid, name: text, type: text, key: text })),
    tokens: count,
  }),
)

export const applySeed = operation({
  name: 'seed apply',
  audience: 'owner',
  summary: 'Create what a seed contains, in your tenant and in further ones.',
  details:
    'A seed is JSON: applications, formulas, tokens, associations, reactors, proxies, members and invitations of the tenant, and\n' +
    'tenants with the same. Everything is created, or nothing. Keys of applications are shown only once; they can be\n' +
    'chosen in a vault in memory.',
  input: closedInput(['seed'], { seed: seedSchema }),
  positionals: ['seed'],
  output: appliedOutput,
  columns: ['name', 'id', 'tokens'],
  examples: [`echo '{"tokens":[{"id":"grace","type":"token","data":"x"}]}' | coffer seed apply -`],
  log: { operation: 'update', message: 'Seed applied' },
  check: ({ seed }, tools) => checkSeed(seed ?? {}, tools),
  async runDetached(session, _, parts) {
    const chosen = parts.find(({ contents }) => contents.applications?.some(({ key }) => key !== undefined))
    if (chosen !== undefined) {
      const at = chosen.contents.applications!.findIndex(({ key }) => key !== undefined)
      await within(`${chosen.place}.applications[${at}].key`, async () => session.vault().admitChosenKeys())
    }
    const applied: { tenant: number; view: Infer<typeof appliedOutput>[number] }[] = await session.inUnit(
      async (context) => {
        const done = []
        for (const part of parts) {
          const recorded: AuditEntry[] = []
          const own = part.isFirst ? context : await enterNew(context, part)
          const collecting = { ...own, audit: auditOf(recorded) }
          done.push({ tenant: own.caller.tenant, view: await fill(collecting, part) })
          await writeLog(own, recorded, session.traceId)
        }
        return done
      },
    )
    for (const { tenant } of applied) session.mail.enqueue(tenant)
    return applied.map(({ view }) => view)
  },
})

/** The contents of one tenant, checked. */
export interface Part {
  place: string
  contents: SeedContents
  isFirst: boolean
  /** When the keys of each application expire, ms since the epoch. */
  expiries: (number | undefined)[]
  rows: CheckedRow[]
}

/** @throws CofferError `validation` with the place of every error */
async function checkSeed(seed: Lenient<Seed>, tools: CheckTools): Promise<Part[]> {
  const errors: PropertyErrors = {}
  const keys = new Set<string>()
  const { tenants = [], ...own } = seed
  const parts = [await checkContents('seed', own)]
  for (const [index, contents = {}] of tenants.entries())
    parts.push(await checkContents(`seed.tenants[${index}]`, contents))
  refuseErrors(errors)
  return parts

  async function checkContents(place: string, contents: Lenient<SeedContents>): Promise<Part> {
    const { applications, formulas, tokens, associations } = contents
    const each = <T, R>(
      list: string,
      items: readonly (T | undefined)[] | undefined,
      check: (item: Partial<T>, at: string, index: number) => R | Promise<R>,
    ) =>
      Promise.all(
        (items ?? []).map((item, index) => {
          const at = `${place}.${list}[${index}]`
          return collectBelow(errors, at, async () => check(item ?? {}, at, index))
        }),
      )
    if (contents.name !== undefined)
      await collectBelow(errors, place, async () => updateTenant.check?.({ name: contents.name }, tools))
    const expiries = await each('applications', applications, ({ key, ...application }, at, index) => {
      if (key !== undefined && !isKey(key, API_KEY))
        addError(errors, `${at}.key`, 'must be key_ and 22 base58 characters')
      if (key !== undefined && keys.has(key))
        addError(errors, `${at}.key`, 'is the key of another application')
      if (key !== undefined) keys.add(key)
      if (applications!.findIndex((other) => other?.name === application.name) < index)
        addError(errors, `${at}.name`, 'is the name of another application')
      return createApplication.check!(application, tools)
    })
    await each('formulas', formulas, (formula) => createFormula.check!(formula, tools))
    const rows = await checkRows(tokens ?? [], tools)
    await each('tokens', rows, (row) => refuseRow(row))
    await each('associations', associations, (both) => linkTokens.check!(both, tools))
    await each('reactors', contents.reactors, ({ formula, application: _, ...reactor }) =>
      createReactor.check!({ ...reactor, ...(formula && { formula: { id: formula } }) }, tools),
    )
    await each('proxies', contents.proxies, ({ application: _, ...proxy }) =>
      createProxy.check!(proxy, tools),
    )
    await each('members', contents.members, (member) => createInvitation.check!(member, tools))
    await each('invitations', contents.invitations, (input) => createInvitation.check!(input, tools))
    return { place, contents: contents as SeedContents, isFirst: place === 'seed', expiries, rows }
  }
}

/** @throws CofferError why the row is refused */
function refuseRow(row: unknown): void {
  if (row instanceof CofferError) throw row
}

/** Creates the tenant, and returns a context for it. */
async function enterNew(context: Context, { place, contents }: Part): Promise<Context> {
  const { store, createUuid } = context
  const keys = context.vault().generateTenantKeys()
  const { number, owner_id } = await within(place, () =>
    createTenant(store, { name: contents.name!, keys, createUuid }),
  )
  return {
    ...context,
    caller: ownerCaller(number, owner_id, { reveal: false }),
    tenant: async () => (await store.get('tenant', 0, String(number)))!,
  }
}

/** Records each entity as the operation that creates it would. */
function auditOf(recorded: AuditEntry[]): Context['audit'] {
  const logs = new Map<string, AnyOperation['log']>([
    ['application', createApplication.log],
    ['reactor_formula', createFormula.log],
    ['reactor', createReactor.log],
    ['proxy', createProxy.log],
    ['invitation', createInvitation.log],
    ['tenant', updateTenant.log],
  ])
  return {
    record: (type, id, as = logs.get(type) ?? createToken.log) =>
      void recorded.push({ type, id, ...(as && { as }) }),
  }
}

async function fill(context: Context, { place, contents, expiries, rows }: Part) {
  const { name, settings, applications = [], associations = [] } = contents
  const each = async <T, R>(
    list: string,
    items: readonly T[],
    work: (item: T, index: number) => Promise<R>,
  ) => {
    const done: R[] = []
    for (const [index, item] of items.entries())
      done.push(await within(`${place}.${list}[${index}]`, () => work(item, index)))
    return done
  }
  const before = await context.tenant()
  if (settings !== undefined || (name !== undefined && name !== before.name))
    await updateTenant.run!(context, { name: name ?? before.name, ...(settings && { settings }) }, undefined)
  const views = await each('applications', applications, ({ key, ...input }, index) =>
    addApplication(context, input, expiries[index], key),
  )
  const bind = (application: string | undefined) => {
    if (application === undefined) return {}
    const bound = views.find((view) => view.name === application)
    if (bound !== undefined) return { application: { id: bound.id } }
    throw invalid('application', 'no application of this seed has this name')
  }
  await each('formulas', contents.formulas ?? [], (input) => createFormula.run!(context, input, undefined))
  await each('tokens', await loadRows(context, rows, { stops: true }), async (row) => refuseRow(row))
  const audit: Context['audit'] = { record: (type, id) => context.audit.record(type, id, linkTokens.log) }
  await each('associations', associations, (both) => linkTokens.run!({ ...context, audit }, both, undefined))
  await each('reactors', contents.reactors ?? [], async ({ formula, application, ...rest }) => {
    const found = formula === undefined ? {} : { formula: { id: await findByName(context, formula) } }
    return createReactor.run!(context, { ...rest, ...found, ...bind(application) }, undefined)
  })
  await each('proxies', contents.proxies ?? [], async ({ application, ...rest }) =>
    createProxy.run!(context, { ...rest, ...bind(application) }, undefined),
  )
  await each('members', contents.members ?? [], (member) => seedMember(context, member))
  await each('invitations', contents.invitations ?? [], (input) => addInvitation(context, input))
  const shown = views.map(({ id, name: own, type, key }) => ({ id, name: own, type, key: key! }))
  const tenant = await context.tenant()
  return { id: tenant.id, name: tenant.name, applications: shown, tokens: rows.length }
}

/** The id of the newest formula with this name that the tenant sees. */
async function findByName({ store, caller }: Context, name: string): Promise<string> {
  for (const tenant of [caller.tenant, 0]) {
    const found = (await readAll(store, 'formula', tenant)).find((formula) => formula.name === name)
    if (found !== undefined) return found.id
  }
  throw invalid('formula', 'no formula has this name')
}

async function seedMember(
  context: Context,
  { role = DEFAULT_ROLE, ...person }: NonNullable<SeedContents['members']>[number],
): Promise<void> {
  const { store, caller, createUuid } = context
  if (await isMember(store, caller.tenant, person.email))
    throw invalid('email', 'is the address of a member already')
  const made = { ...person, role, createdBy: caller.actor.id }
  const member = await addMember(store, await context.tenant(), made, createUuid)
  context.audit.record('member', member.id, { operation: 'create', message: 'Member created' })
}

/** Names `place` in the errors of `work`. */
async function within<T>(place: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof CofferError)) throw error
    const entries = Object.entries(error.errors ?? {}).map(([path, why]) => [`${place}.${path}`, why])
    const { code, status } = error
    const errors = entries.length === 0 ? { [place]: [error.message] } : Object.fromEntries(entries)
    const message = entries.length === 0 ? `${place}: ${error.message}` : `${place}.${error.message}`
    throw new CofferError(code, message, { status, errors, cause: error })
  }
}
