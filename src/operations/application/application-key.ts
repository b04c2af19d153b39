/** The keys of an application. Each acts as the application, so that one can be replaced while another is in use. */
import { MAX_KEYS } from '../../domain/access/application.js'
import { CofferError, conflict } from '../../errors.js'
import { type Context, operation } from '../../framework/operation.js'
import { arrayOf } from '../../framework/output.js'
import { requireRecord } from '../../framework/require-record.js'
import { filterBy, idOf, inputSchema } from '../../framework/schema.js'
import { issueKey, keyOutput, replaceKeys, revokeKeys, viewKey } from './application-record.js'

const application_id = idOf('app', 'The id of the application, or its name.')
const id = { type: 'string', description: 'The id of the key, not the key itself.' } as const
const one = inputSchema(['application_id', 'id'], { application_id, id })

export const createKey = operation({
  name: 'app key create',
  summary: 'Create another key of an application and print it, once.',
  details: `An application has at most ${MAX_KEYS} keys. Each has all of its permissions.`,
  permissions: ['application:create'],
  route: 'POST /applications/{application_id}/keys',
  success: 201,
  input: inputSchema(['application_id'], { application_id }),
  output: keyOutput,
  examples: ['coffer app key create "starter private"'],
  log: { operation: 'update', message: 'Application key created' },
  async run(context, input) {
    const application = await requireRecord(context, 'application', input.application_id)
    const keys = application.keys
    if (keys.length >= MAX_KEYS)
      throw conflict(`This application has ${MAX_KEYS} keys already. Delete one first.`)
    const { key, entry } = await issueKey(context, application.id)
    await replaceKeys(context, application, [entry, ...keys])
    return viewKey(entry, key)
  },
})

export const listKeys = operation({
  name: 'app key list',
  summary: 'List the keys of an application, newest first, without the keys themselves.',
  permissions: ['application:read'],
  route: 'GET /applications/{application_id}/keys',
  input: inputSchema(['application_id'], { application_id, id: filterBy('Only the key with this id.') }),
  output: arrayOf(keyOutput),
  examples: ['coffer app key list "starter private"'],
  async run(context, { application_id, id: ids }) {
    const { keys } = await requireRecord(context, 'application', application_id)
    return keys.filter((each) => ids === undefined || ids.includes(each.id)).map((each) => viewKey(each))
  },
})

export const getKey = operation({
  name: 'app key get',
  summary: 'Get when and by whom a key was created.',
  permissions: ['application:read'],
  route: 'GET /applications/{application_id}/keys/{id}',
  input: one,
  output: keyOutput,
  examples: [`coffer app key get 'starter private' "$(coffer app key list 'starter private' -o id)"`],
  log: { operation: 'read', message: 'Application key retrieved' },
  async run(context, input) {
    const { application, key } = await requireKey(context, input)
    context.audit.record('application', application.id)
    return viewKey(key)
  },
})

export const deleteKey = operation({
  name: 'app key delete',
  summary: 'Revoke a key of an application immediately; its other keys stay.',
  permissions: ['application:delete'],
  route: 'DELETE /applications/{application_id}/keys/{id}',
  input: one,
  examples: [
    `coffer app key delete 'starter private' "$(coffer app key list 'starter private' -o id)" --yes`,
  ],
  destroys: 'This revokes a key of an application:',
  log: { operation: 'update', message: 'Application key deleted' },
  async run(context, input) {
    const { application, key } = await requireKey(context, input)
    await revokeKeys(context.store, [key])
    const others = application.keys.filter(({ id }) => id !== key.id)
    await replaceKeys(context, application, others)
    return undefined
  },
})

/** @throws CofferError `not_found` for an unknown application, and for a key of another */
async function requireKey(context: Context, input: { application_id: string; id: string }) {
  const application = await requireRecord(context, 'application', input.application_id)
  const key = application.keys.find(({ id }) => id === input.id)
  if (key === undefined) throw new CofferError('not_found', 'This application has no key with this id.')
  return { application, key }
}
