/** Sample applications: one of each type, with every permission of the type. */

import { type ApplicationType, PERMISSIONS, type Permission } from '../domain/permissions.js'
import type { AnyOperation } from '../framework/operation.js'
import { perform } from '../framework/perform.js'
import { createApplication, listApplications } from '../operations/application/application.js'
import { readSettings } from '../operations/config/settings-record.js'
import type { App } from './app.js'

/** `key` is present only in a new application. */
export interface SampleApplication {
  id: string
  key?: string
}

export type SampleApplications = Partial<Record<ApplicationType, SampleApplication>>

export const SAMPLE_TYPES: readonly ApplicationType[] = ['management', 'private', 'public']

/** The newest application of each type in the vault's first tenant. */
export async function findSampleApplications(app: App): Promise<SampleApplications> {
  const found: SampleApplications = {}
  for (const type of SAMPLE_TYPES) {
    const list = (await performAsOwner(app, listApplications, { type: [type], size: 1 })) as {
      data: { id: string }[]
    }
    const [newest] = list.data
    if (newest !== undefined) found[type] = { id: newest.id }
  }
  return found
}

/** Finds the sample applications and creates the missing ones. */
export async function ensureSampleApplications(app: App): Promise<SampleApplications> {
  const samples = await findSampleApplications(app)
  for (const type of SAMPLE_TYPES.filter((each) => samples[each] === undefined)) {
    const input = { name: `starter ${type}`, type, ...grantsOf(type) }
    const { id, key } = (await performAsOwner(app, createApplication, input)) as Required<SampleApplication>
    samples[type] = { id, key }
  }
  return samples
}

/** Every permission of the type; the private one sees tokens in the clear. */
function grantsOf(type: ApplicationType): object {
  const permissions = (Object.keys(PERMISSIONS) as Permission[]).filter((permission) =>
    (PERMISSIONS[permission].application_types as readonly string[]).includes(type),
  )
  if (type !== 'private') return { permissions }
  return { rules: [{ priority: 1, container: '/', transform: 'reveal', permissions }] }
}

/** Has sessions do what they were granted, whatever their authorizer may do, unless the setting was set before. */
export async function beginBeyondAuthorizer({ store }: App): Promise<void> {
  await store.write(async (writer) => {
    const settings = await readSettings(writer)
    const values = { 'sessions.beyond_authorizer': true, ...settings.values }
    await writer.replace('settings', 0, { ...settings, values })
  })
}

export async function performAsOwner(
  app: App,
  definition: AnyOperation,
  input: Record<string, unknown>,
): Promise<unknown> {
  const caller = await app.owner({ reveal: false })
  const { result } = await perform(app, caller, definition, input, app.createUuid())
  return result
}
