import { type ApplicationType, permissionsOf } from '../domain/access/permissions.js'
import type { ApplicationRecord } from '../domain/records/records.js'
import type { Seed } from '../operations/seed/seed-schema.js'
import { readSettings } from '../operations/tenant/tenant-create.js'
import { readAll } from '../storage/store.js'
import type { App } from './app.js'

/**
 * A new application has `key`, unless the user chose the key (`is_key_chosen`). An application that existed before has `name`.
 */
export interface SampleApplication {
  id: string
  key?: string
  name?: string
  is_key_chosen?: boolean
}

const OWNER = { reveal: false }

export type SampleApplications = Partial<Record<ApplicationType, SampleApplication>>

export const SAMPLE_TYPES: readonly ApplicationType[] = ['management', 'private', 'public']

/** Finds the newest application of each type in the oldest tenant. */
export async function findSampleApplications(
  app: App,
  isWanted: (application: ApplicationRecord) => boolean = () => true,
): Promise<SampleApplications> {
  const { number } = await app.tenant()
  const all = (await app.store.read((reader) => readAll(reader, 'application', number))).filter(isWanted)
  const samples: SampleApplications = {}
  for (const type of SAMPLE_TYPES) {
    const found = all.find((each) => each.type === type)
    if (found !== undefined) samples[type] = { id: found.id, name: found.name }
  }
  return samples
}

export async function ensureSampleApplications(app: App): Promise<SampleApplications> {
  const samples = await findSampleApplications(app, ({ name, type }) => name === `starter ${type}`)
  for (const type of SAMPLE_TYPES)
    samples[type] ??= await create(app, { name: `starter ${type}`, type, ...grantsOf(type) })
  return samples
}

async function create(app: App, input: Record<string, unknown>): Promise<SampleApplication> {
  const { id, key } = (await app.ask({ operation: 'app create', input, as: OWNER })).result
  return { id, key: key! }
}

/** All permissions of the type that have an effect. The private application sees plaintext. */
function grantsOf(type: ApplicationType): object {
  const permissions = permissionsOf(type, { withEffect: true })
  if (type !== 'private') return { permissions }
  return { rules: [{ priority: 1, container: '/', transform: 'reveal', permissions }] }
}

/** Allows sessions to exceed the grants of their authorizer. Does nothing if somebody has changed this setting before. */
export async function beginBeyondAuthorizer({ store }: App): Promise<void> {
  await store.write(async (writer) => {
    const settings = await readSettings(writer)
    const values = { 'sessions.beyond_authorizer': true, ...settings.values }
    await writer.replace('settings', 0, { ...settings, values })
  })
}

/** The keys are names for applications of the first tenant, `tenant/name` for other tenants, and types for samples. */
type SeededApplications = Record<string, SampleApplication & { key: string }>

/**
 * Adds the samples if no tenant of the seed has a list of applications. An empty list counts. @throws CofferError like `seed
 * apply`
 */
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
