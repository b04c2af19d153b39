/** The owner's commands that are no operations: they are about the vault itself, and no application may give them. */

import { readLink } from '../domain/invitation.js'
import { CofferError } from '../errors.js'
import { explain } from '../framework/explain.js'
import { registry } from '../operations/all.js'
import { getSetting, listSettings, setSetting } from '../operations/config/settings.js'
import { acceptInvitation, refuseLink } from '../operations/invite/accept-invitation.js'
import { listOutbox, type OutboxMail, readOutbox, summarizeLetter } from '../operations/invite/outbox.js'
import { listRuns } from '../operations/reactor/reactor-log.js'
import { addTenant, listTenants, showTenant } from '../operations/tenant/owner-tenants.js'
import type { Header } from '../storage/vault-file.js'
import type { App } from './app.js'

type VaultCommand = (app: App, input: Record<string, unknown>) => Promise<unknown>

const COMMANDS: Record<string, VaultCommand> = {
  'vault status': describeVault,
  'vault verify': (app) => app.maintenance().verify(),
  'vault compact': compactVault,
  'vault backup': (app, { path }) => app.maintenance().backup(String(path)),
  'vault header': async (app) => app.maintenance().readHeader(),
  'vault replace-header': (app, { header, replaces }) =>
    app.maintenance().replaceHeader(header as Header, String(replaces)),
  'tenant create': (app, { name }) => addTenant(app, { name: String(name), keys: app.generateTenantKeys() }),
  'tenant list': ({ store }) => listTenants(store),
  'tenant find': ({ store }, { tenant }) => showTenant(store, String(tenant)),
  'log verify': verifyLog,
  explain: explainCall,
  'formula check': checkCode,
  'reactor runs': async (app, { tenant, id }) =>
    listRuns(app.store, (await app.tenant(tenant as string | undefined)).number, String(id)),
  'config list': ({ store }) => listSettings(store),
  'config get': ({ store }, { name }) => getSetting(store, String(name)),
  'config set': ({ store }, { name, text }) => setSetting(store, String(name), String(text)),
  'config unset': ({ store }, { name }) => setSetting(store, String(name), undefined),
  'invite outbox': showOutbox,
  'invite delivery': waitForDelivery,
  'invite accept': acceptLink,
}

/** Runs the command called `name`. @throws CofferError whatever it refuses. */
export async function runVaultCommand(
  app: App,
  name: string,
  input: Record<string, unknown>,
): Promise<unknown> {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
  if (command === undefined) throw new CofferError('not_found', `There is no command "${name}".`)
  return command(app, input)
}

/** Input `tenant`: whose tokens and log records are counted. */
async function describeVault(app: App, { tenant }: { tenant?: string }): Promise<unknown> {
  const { id, name, owner_id, number } = await app.tenant(tenant)
  const count = (kind: 'token' | 'log') =>
    app.store.read(async (reader) => (await reader.find(kind, number, { page: 1, size: 1 })).total)
  return {
    ...(await app.maintenance().describe()),
    tenant: { id, name, owner_id },
    tokens: await count('token'),
    logs: await count('log'),
    reactor_sandbox: await app.sandbox(),
  }
}

/** Whoever asks for this vouches for the clock: what it says is over goes now. */
async function compactVault(app: App): Promise<void> {
  await app.store.write(async (writer) => writer.noteTime({ isTrusted: true }))
  while ((await app.sweep()) > 0);
  await app.maintenance().compact()
}

/** Input `tenant`: whose log. */
async function verifyLog(app: App, { tenant }: { tenant?: string }): Promise<unknown> {
  const { id, name, number } = await app.tenant(tenant)
  const { count, brokenAt } = await app.store.verifyLogs(number)
  const isWhole = brokenAt === undefined
  return {
    tenant: { id, name },
    is_whole: isWhole,
    records: count,
    ...(isWhole ? {} : { broken_at: brokenAt }),
  }
}

/** What an operation on tokens would answer, and why: for the application of `key` or called `application`, or the owner. */
async function explainCall(app: App, input: Record<string, unknown>): Promise<unknown> {
  const { operation, asked, key, application, tenant, reveal = false } = input as unknown as ExplainInput
  const definition = registry.find(operation)
  if (definition === undefined) throw new CofferError('not_found', `There is no operation "${operation}".`)
  const { number } = await app.tenant(tenant)
  if (application !== undefined)
    return explain(app, { application, tenant: number }, definition, asked, { reveal })
  if (key !== undefined) return explain(app, { key }, definition, asked, { reveal })
  return explain(app, { owner: await app.owner({ reveal, tenant }) }, definition, asked, { reveal })
}

interface ExplainInput {
  operation: string
  asked: Record<string, unknown>
  key?: string
  application?: string
  tenant?: string
  reveal?: boolean
}

/** What is wrong with `code` before anything calls it; null for nothing. */
async function checkCode(app: App, { code }: Record<string, unknown>): Promise<unknown> {
  const settings = await app.store.read((reader) => reader.get('settings', 0, 'vault'))
  const reactors = await app.reactors(settings?.values ?? {})
  const { fault } = await reactors.check(String(code))
  return fault === undefined ? null : { message: fault.message, errors: fault.errors }
}

/** All mail of the tenant by `page` and `size`, or the one called `id`. */
async function showOutbox(app: App, input: Record<string, unknown>): Promise<unknown> {
  const { tenant, id, page = 1, size = 20 } = input as OutboxInput
  const { number } = await app.tenant(tenant)
  const { publicUrl } = app.post
  if (id !== undefined) return readOutbox(app.store, number, id, publicUrl)
  const { pagination, data } = await listOutbox(app.store, number, { page, size }, publicUrl)
  return { pagination, data: data.map(summarizeLetter) }
}

interface OutboxInput {
  tenant?: string
  id?: string
  page?: number
  size?: number
}

/** What became of the newest mail of the invitation called `id`, once it was tried. */
async function waitForDelivery(
  app: App,
  { tenant, id }: { tenant?: string; id?: string },
): Promise<OutboxMail> {
  const { number } = await app.tenant(tenant)
  await app.post.settle()
  return summarizeLetter(await readOutbox(app.store, number, String(id), app.post.publicUrl))
}

/** Makes whoever has `link` a member. @throws CofferError `not_found`, `conflict`, `validation` */
async function acceptLink(app: App, input: Record<string, unknown>): Promise<unknown> {
  const { link = '', first_name = '', last_name = '' } = input as Record<string, string>
  const names = { first_name, last_name }
  const outcome = await acceptInvitation(app, { secret: readLink(link), names, traceId: app.createUuid() })
  if (outcome.isAccepted) return outcome.member
  throw refuseLink(outcome.reason)
}
