/** Fills a new vault in memory with a seed, or with sample applications. */
import type { ResultOf } from '../operations/all.js'
import type { Seed } from '../operations/seed/seed-schema.js'
import type { App } from './app.js'
import {
  beginBeyondAuthorizer,
  ensureSampleApplications,
  type SampleApplication,
} from './sample-applications.js'

/** Applications by name, those of further tenants by `tenant/name`; samples by type. */
export type SeededApplications = Record<string, SampleApplication & { key: string }>

/** A seed that lists no applications, not even none, gets the sample ones. @throws CofferError `validation`, those of `seed apply` */
export async function seedVault(app: App, seed: unknown): Promise<SeededApplications> {
  await beginBeyondAuthorizer(app)
  const applied = seed === undefined ? [] : await apply(app, seed)
  const { applications: given, tenants = [] } = (seed ?? {}) as Seed
  const entries = applied.flatMap(({ name: tenant, applications }, index) =>
    applications.map(({ id, name, key }) => [index === 0 ? name : `${tenant}/${name}`, { id, key }] as const),
  )
  if ([given, ...tenants.map(({ applications }) => applications)].some((list) => list !== undefined))
    return Object.fromEntries(entries)
  return (await ensureSampleApplications(app)) as SeededApplications
}

async function apply(app: App, seed: unknown): Promise<ResultOf<'seed apply'>> {
  return (await app.ask({ operation: 'seed apply', input: { seed }, as: { reveal: false } })).result
}
