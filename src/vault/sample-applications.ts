import { type ApplicationType, permissionsOf } from '../domain/access/permissions.js'
import type { Seed } from '../operations/seed/seed-schema.js'
import { readSettings } from '../operations/tenant/tenant-create.js'
import type { App } from './app.js'

/** `key` is present only in a new application, `name` in one that was there. */
export interface SampleApplication {
  id: string
  key?: string
  name?: string
}

const OWNER = { reveal: false }

export type SampleApplications = Partial<Record<ApplicationType, SampleApplication>>

export const SAMPLE_TYPES: readonly ApplicationType[] = ['management', 'private', 'public']

/** The newest application of each type in the vault's first tenant. */
export function findSampleApplications(app: App): Promise<SampleApplications> {
  return ofEachType((type) => findApplication(app, type, () => true))
}

/** Finds the sample applications by their names, and creates the missing ones. */
export function ensureSampleApplications(app: App): Promise<SampleApplications> {
  return ofEachType(async (type) => {
    const name = `starter ${type}`
    const found = await findApplication(app, type, (each) => each.name === name)
    return found ?? create(app, { name, type, ...grantsOf(type) })
  })
}

async function ofEachType(find: (type: ApplicationType) => Promise<SampleApplication | undefined>) {
  const samples: SampleApplications = {}
  for (const type of SAMPLE_TYPES) {
    const sample = await find(type)
    if (sample !== undefined) samples[type] = sample
  }
  return samples
}

async function findApplication(
  app: App,
  type: ApplicationType,
  isWanted: (application: SampleApplication) => boolean,
): Promise<SampleApplication | undefined> {
  for (let page = 1; ; page++) {
    const input = { type: [type], page, size: 100 }
    const { data, pagination } = (await app.ask({ operation: 'app list', input, as: OWNER })).result
    const found = data.find(isWanted)
    if (found !== undefined) return { id: found.id, name: found.name }
    if (page >= pagination.total_pages) return undefined
  }
}

async function create(app: App, input: Record<string, unknown>): Promise<SampleApplication> {
  const { id, key } = (await app.ask({ operation: 'app create', input, as: OWNER })).result
  return { id, key: key! }
}

/** Every permission of the type that has an effect; the private application sees plaintext. */
function grantsOf(type: ApplicationType): object {
  const permissions = permissionsOf(type, { withEffect: true })
  if (type !== 'private') return { permissions }
  return { rules: [{ priority: 1, container: '/', transform: 'reveal', permissions }] }
}

/** Lets sessions exceed the grants of their authorizer, unless the setting was set before. */
export async function beginBeyondAuthorizer({ store }: App): Promise<void> {
  await store.write(async (writer) => {
    const settings = await readSettings(writer)
    const values = { 'sessions.beyond_authorizer': true, ...settings.values }
    await writer.replace('settings', 0, { ...settings, values })
  })
}

/** Applications by name, those of further tenants by `tenant/name`; samples by type. */
type SeededApplications = Record<string, SampleApplication & { key: string }>

/** Adds the samples if the seed has no list of applications; an empty list is one. @throws CofferError `validation`, those of `seed apply` */
export async function seedVault(app: App, seed: unknown): Promise<SeededApplications> {
  await beginBeyondAuthorizer(app)
  const asked = { operation: 'seed apply', input: { seed }, as: OWNER } as const
  const applied = seed === undefined ? [] : (await app.ask(asked)).result
  const { applications: given, tenants = [] } = (seed ?? {}) as Seed
  const entries = applied.flatMap(({ name: tenant, applications }, index) =>
    applications.map(({ id, name, key }) => [index === 0 ? name : `${tenant}/${name}`, { id, key }] as const),
  )
  if ([given, ...tenants.map(({ applications }) => applications)].some((list) => list !== undefined))
    return Object.fromEntries(entries)
  return (await ensureSampleApplications(app)) as SeededApplications
}
