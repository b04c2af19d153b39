import { type ApplicationType, permissionsOf } from '../domain/access/permissions.js'
import { isObject } from '../domain/json/json.js'
import type { ApplicationRecord } from '../domain/records/records.js'
import { readSettings } from '../operations/tenant/tenant-create.js'
import { readAll } from '../storage/store.js'
import type { App } from './app.js'

/**
 * A new application has `key`, unless the user chose the key (`is_key_chosen`). An application that already existed has
 * `name`.
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
  for (const type of SAMPLE_TYPES) samples[type] ??= await create(app, sampleOf(type))
  return samples
}

async function create(app: App, input: Record<string, unknown>): Promise<SampleApplication> {
  const { id, key } = (await app.ask({ operation: 'app create', input, as: OWNER })).result
  return { id, key: key! }
}

function sampleOf(type: ApplicationType) {
  return { name: `starter ${type}`, type, ...grantsOf(type) }
}

/** The private application sees plaintext. */
function grantsOf(type: ApplicationType): object {
  const permissions = permissionsOf(type, { withEffect: true })
  if (type !== 'private') return { permissions }
  return { rules: [{ priority: 1, container: '/', transform: 'reveal', permissions }] }
}

/** The initial settings of a server for tests. With these settings, Coffer behaves like the emulated service. */
const OF_SERVICE = { 'sessions.beyond_authorizer': true, 'enrichments.fake': true }

/** Applies {@link OF_SERVICE}, but keeps settings that were already changed. */
export async function beginAsService({ store }: App): Promise<void> {
  await store.write(async (writer) => {
    const settings = await readSettings(writer)
    const values = { ...OF_SERVICE, ...settings.values }
    await writer.replace('settings', 0, { ...settings, values })
  })
}

/** Applications by name (in tenants after the first: by `tenant/name`), and samples by type. */
export type SeededApplications = Record<string, SampleApplication & { key: string }>

/**
 * Applies the seed. If no tenant in the seed has a list of applications, also adds the samples. An empty list counts as
 * a list. `kept`: applications whose keys stay. @throws CofferError like `seed apply`
 */
export async function seedVault(
  app: App,
  given: unknown,
  kept: SeededApplications = {},
): Promise<SeededApplications> {
  await beginAsService(app)
  const seed = keepKeys(given, kept)
  const asked = { operation: 'seed apply', input: { seed }, as: OWNER } as const
  const applied = seed === undefined ? [] : (await app.ask(asked)).result
  const entries = applied.flatMap(({ name: tenant, applications }, index) =>
    applications.map(({ id, name, key }) => [index === 0 ? name : `${tenant}/${name}`, { id, key }] as const),
  )
  if (listsApplications(given)) return Object.fromEntries(entries)
  const samples: SeededApplications = {}
  for (const [type, sample] of Object.entries(await ensureSampleApplications(app)))
    samples[type] = { ...sample, key: sample.key ?? kept[type]!.key }
  return samples
}

/** `seed` may have any form, because it is not validated yet. */
function listsApplications(seed: unknown): boolean {
  if (!isObject(seed)) return false
  const { tenants } = seed
  const all = Array.isArray(tenants) ? [seed, ...tenants] : [seed]
  return all.some((contents) => isObject(contents) && contents.applications !== undefined)
}

/** Gives each application without a key its key in `kept`. */
function keepKeys(seed: unknown, kept: SeededApplications): unknown {
  if (!isObject(seed) || Object.keys(kept).length === 0) return seed
  if (!listsApplications(seed)) {
    const samples = SAMPLE_TYPES.filter((type) => kept[type] !== undefined)
    const applications = samples.map((type) => ({ ...sampleOf(type), key: kept[type]!.key }))
    return { ...seed, applications }
  }
  const chosen = new Set<unknown>()
  const itemsOf = (contents: unknown) =>
    isObject(contents) && Array.isArray(contents.applications) ? (contents.applications as unknown[]) : []
  const tenants = Array.isArray(seed.tenants) ? (seed.tenants as unknown[]) : []
  for (const item of [seed, ...tenants].flatMap(itemsOf)) if (isObject(item)) chosen.add(item.key)
  const keepIn = (contents: unknown, prefix: string) => {
    if (!isObject(contents) || !Array.isArray(contents.applications)) return contents
    const applications = itemsOf(contents).map((item) => {
      const { key } = (isObject(item) && item.key === undefined && kept[`${prefix}${item.name}`]) || {}
      if (key === undefined || chosen.has(key)) return item
      chosen.add(key)
      return { ...(item as object), key }
    })
    return { ...contents, applications }
  }
  const nameOf = (contents: unknown) => (isObject(contents) ? `${contents.name}/` : '')
  const others = tenants.map((contents) => keepIn(contents, nameOf(contents)))
  return { ...(keepIn(seed, '') as object), ...(tenants.length > 0 && { tenants: others }) }
}
