/** An application can have several keys. Keys are replaced immediately, or after a grace period. */
import { formatDate, parseDuration } from '../../domain/dates.js'
import { about } from '../../domain/property-errors.js'
import type { ApplicationKey } from '../../domain/records/records.js'
import { CofferError, conflict, validationError } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { requires } from '../../framework/declaration.js'
import { change, query } from '../../framework/operation.js'
import { arrayOf } from '../../framework/output.js'
import { closedInput, filterBy, type Infer, inputSchema } from '../../framework/schema.js'
import * as records from './application-record.js'
import { applicationOutput, keyOutput, viewApplication } from './application-record.js'
import { id, managed } from './managed.js'

const MAX_KEYS = 20
const MAX_GRACE = '7d'
const GRACE_RULE = `must be a duration such as 15m, 1h or 7d, at most ${MAX_GRACE}`

const regenerateKey = change({
  name: 'app regenerate',
  plaintext: 'refused',
  summary: 'Replace all keys of an application by a new one; the old keys are revoked immediately.',
  access: requires('application:update'),
  route: 'POST /applications/{id}/regenerate',
  input: managed.byId,
  output: applicationOutput,
  cli: { confirmation: 'This revokes all keys of application' },
  examples: ['coffer app regenerate "starter private" --yes'],
  log: { operation: 'update', message: 'Application key regenerated', derivesNoEvent: true },
  async run(context, input) {
    const before = await managed.require(context, input.id)
    await records.revokeKeys(context.store, before.keys)
    emitKeyEvents(context, 'deleted', before.id, before.keys)
    return replaceKeys(context, before, [])
  },
})

const regenerateWithGrace = change({
  name: 'app regenerate-with-grace',
  plaintext: 'refused',
  summary: 'Replace all keys of an application by a new one; the old keys work until the grace time is over.',
  details:
    'Give the new key to your programs within the grace time. A key that already expires earlier keeps its expiry.\n' +
    'See when the old keys expire: coffer app key list NAME. Revoke one earlier: coffer app key delete NAME KEY-ID.',
  access: requires('application:update'),
  input: closedInput(['id', 'grace'], {
    id,
    grace: {
      type: 'string',
      description: `How long the old keys still work, at most ${MAX_GRACE}: 15m, 1h, 2d.`,
    },
  }),
  output: applicationOutput,
  cli: {
    form: { command: 'app regenerate', flag: 'grace' },
    positionals: ['id'],
    confirmation: 'After the grace time, this revokes all keys of application',
  },
  examples: ['coffer app regenerate "starter private" --grace 1h --yes'],
  log: {
    operation: 'update',
    message: 'Application key regenerated, with a grace time for the old keys',
    derivesNoEvent: true,
  },
  check: ({ grace = '' }) => about('grace', () => readGrace(grace)),
  async run(context, input, graceMs) {
    const before = await managed.require(context, input.id)
    const live = records.liveKeys(before, context.now)
    if (live.length >= MAX_KEYS)
      throw conflict(`This application has ${MAX_KEYS} keys already. Delete one first, or leave out --grace.`)
    const old = live.map((key) => endAt(key, context.now + graceMs))
    for (const key of old) await records.expireApiKey(context.store, key)
    return replaceKeys(context, before, old)
  },
})

function readGrace(text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined || ms > parseDuration(MAX_GRACE)!) throw validationError(GRACE_RULE)
  return ms
}

function endAt(key: ApplicationKey, ms: number): ApplicationKey & { expires_at: string } {
  const { expires_at = formatDate(ms) } = key
  return { ...key, expires_at: Date.parse(expires_at) < ms ? expires_at : formatDate(ms) }
}

/** `old`: the keys that remain in addition to the new key. */
async function replaceKeys(
  context: Context,
  before: Awaited<ReturnType<typeof managed.require>>,
  old: readonly ApplicationKey[],
) {
  const { key, entry } = await records.issueKey(context, before.id)
  emitKeyEvents(context, 'created', before.id, [entry])
  const changed = await managed.change(context, before, { keys: [entry, ...old] })
  return viewApplication(changed, context.now, key)
}

const keyId = {
  type: 'string',
  refersTo: 'app key',
  description: 'The id of the key, not the key itself.',
} as const
const oneKey = inputSchema(['application_id', 'id'], { application_id: id, id: keyId })
const keyIdExample = `'starter private' "$(coffer app key list 'starter private' -o id)"`

const createKey = change({
  name: 'app key create',
  plaintext: 'refused',
  summary: 'Create another key of an application and print it, once.',
  details: `An application has at most ${MAX_KEYS} keys. Each key has all permissions of the application.`,
  access: requires('application:create'),
  route: 'POST /applications/{application_id}/keys',
  http: { status: 201 },
  input: inputSchema(['application_id'], { application_id: id }),
  output: keyOutput,
  examples: ['coffer app key create "starter private"'],
  log: { operation: 'update', message: 'Application key created', derivesNoEvent: true },
  async run(context, input) {
    const application = await managed.require(context, input.application_id)
    const { id, keys } = application
    if (records.liveKeys(application, context.now).length >= MAX_KEYS)
      throw conflict(`This application has ${MAX_KEYS} keys already. Delete one first.`)
    const { key, entry } = await records.issueKey(context, id)
    await managed.change(context, application, { keys: [entry, ...keys] })
    emitKeyEvents(context, 'created', id, [entry])
    return records.viewKey(entry, key)
  },
})

const listKeys = query({
  name: 'app key list',
  summary: 'List the keys of an application, newest first, without the keys themselves.',
  access: requires('application:read'),
  route: 'GET /applications/{application_id}/keys',
  input: inputSchema(['application_id'], { application_id: id, id: filterBy('Only the key with this id.') }),
  output: arrayOf(keyOutput),
  examples: ['coffer app key list "starter private"'],
  async run(context, { application_id, id: ids }) {
    const { keys } = viewApplication(await managed.require(context, application_id), context.now)
    return keys.filter((each) => ids?.includes(each.id) !== false)
  },
})

const getKey = query({
  name: 'app key get',
  summary: 'Show who created a key and when, and when the key expires.',
  access: requires('application:read'),
  route: 'GET /applications/{application_id}/keys/{id}',
  input: oneKey,
  output: keyOutput,
  examples: [`coffer app key get ${keyIdExample}`],
  log: { operation: 'read', message: 'Application key retrieved' },
  async run(context, input) {
    const { application, key } = await requireKey(context, input)
    context.audit.record('application', application.id)
    return records.viewKey(key)
  },
})

const deleteKey = change({
  name: 'app key delete',
  summary: 'Revoke a key of an application immediately; its other keys stay.',
  access: requires('application:delete'),
  route: 'DELETE /applications/{application_id}/keys/{id}',
  input: oneKey,
  cli: { confirmation: 'This revokes a key of an application:' },
  examples: [`coffer app key delete ${keyIdExample} --yes`],
  log: { operation: 'update', message: 'Application key deleted', derivesNoEvent: true },
  async run(context, input) {
    const { application, key } = await requireKey(context, input)
    await records.revokeKeys(context.store, [key])
    emitKeyEvents(context, 'deleted', application.id, [key])
    await managed.change(context, application, { keys: application.keys.filter((each) => each !== key) })
    return undefined
  },
})

function emitKeyEvents(
  { audit }: Context,
  verb: 'created' | 'deleted',
  application_id: string,
  keys: readonly ApplicationKey[],
): void {
  for (const key of keys) audit.emit({ type: `application.key.${verb}`, about: { ...key, application_id } })
}

/** @throws CofferError `not_found`, also if the key belongs to another application */
async function requireKey(context: Context, input: Infer<typeof oneKey>) {
  const application = await managed.require(context, input.application_id)
  const key = records.liveKeys(application, context.now).find(({ id }) => id === input.id)
  if (key === undefined) throw new CofferError('not_found', 'This application has no key with this id.')
  return { application, key }
}

export const keyOperations = [
  regenerateKey,
  regenerateWithGrace,
  createKey,
  listKeys,
  getKey,
  deleteKey,
] as const
