import { APPLICATION_TYPES, checkGrants, type RequestedGrants } from '../../domain/access/application.js'
import { PERMISSIONS } from '../../domain/access/permissions.js'
import { formatDate } from '../../domain/dates.js'
import { refuseErrors } from '../../domain/property-errors.js'
import type { ApplicationKey } from '../../domain/records/records.js'
import { CofferError, conflict, noRevealError } from '../../errors.js'
import { type Context, operation } from '../../framework/operation.js'
import { arrayOf, component, text, texts } from '../../framework/output.js'
import { pageInput } from '../../framework/page.js'
import { filterBy, type Infer, idOf, inputSchema } from '../../framework/schema.js'
import { manage, whereIn } from '../manage.js'
import * as records from './application-record.js'
import { type ApplicationView, applicationOutput, keyOutput, viewApplication } from './application-record.js'

const MAX_KEYS = 20

const id = idOf('app', 'The id of the application, or its name.')
const managed = manage({
  name: 'app',
  kind: 'application',
  path: '/applications',
  permission: 'application',
  id,
  output: applicationOutput,
  view: (_, record) => viewApplication(record),
})

const body = {
  name: { type: 'string', minLength: 1, maxLength: 200, description: 'A display name.' },
  permissions: {
    ...records.permissionList,
    description: 'A permission of the application; see coffer app permissions.',
  },
  rules: records.ruleList(
    'An access rule. Of the rules that grant a permission, the one with the lowest priority number decides.',
    {
      required: ['priority', 'container', 'transform', 'permissions'],
    },
  ),
  expires_at: { type: 'string', duration: 'ahead', description: 'When its keys expire.' },
} as const
const anApplicationType = { type: 'string', enum: APPLICATION_TYPES } as const

const applicationInput = {
  ...inputSchema(['name', 'type'], {
    ...body,
    type: { ...anApplicationType, description: `One of ${APPLICATION_TYPES.join(', ')}.` },
    create_key: { type: 'boolean', default: true, description: 'Create its first key.' },
  }),
  needsOneOf: ['permissions', 'rules'],
} as const

export const createApplication = operation({
  ...managed.createDeclaration,
  summary: 'Create an application and print its key, which is shown only once.',
  input: applicationInput,
  examples: [
    'coffer app create --name backend --type private --permission token:create --permission token:read',
    `coffer app create --name support --type private --rule '/pci/ mask token:read'`,
  ],
  check: (input, tools) => records.checkRights(input.type, input, tools),
  async run(context, input, expires) {
    if (context.caller.isNoReveal && input.create_key !== false) throw noRevealError('a new key')
    return addApplication(context, input, expires)
  },
})

/** Creates an application, with the key `chosen` if given. `expires`: ms since the epoch. */
export async function addApplication(
  context: Context,
  input: Infer<typeof applicationInput>,
  expires: number | undefined,
  chosen?: string,
): Promise<ApplicationView> {
  const id = context.createUuid()
  const issued = input.create_key === false ? undefined : await records.issueKey(context, id, chosen)
  const keys = issued === undefined ? [] : [issued.entry]
  const attributes = { type: input.type, ...readBody(input, expires), keys }
  return viewApplication(await managed.add(context, attributes, { id }), issued?.key)
}

function readBody(input: RequestedGrants & { name: string }, expires: number | undefined) {
  const expires_at = expires === undefined ? undefined : formatDate(expires)
  return { name: input.name, ...records.readRights(input), expires_at }
}

const listApplications = operation({
  ...managed.listDeclaration,
  summary: 'List applications, newest first.',
  input: inputSchema([], {
    id: { ...filterBy('Only the application with this id.'), refersTo: 'app' },
    type: filterBy('Only applications of this type.'),
    ...pageInput(100),
  }),
  examples: ['coffer app list', 'coffer app list --type private'],
  runDetached: (session, { type, ...asked }) =>
    managed.list(session, { ...asked, where: whereIn('type', type) }),
})

const whoami = operation({
  name: 'app whoami',
  summary: 'Get the application whose API key is in use.',
  permissions: [],
  route: 'GET /applications/key',
  output: applicationOutput,
  examples: [
    'coffer app key create "starter private" --fields key -o value | coffer app whoami --api-key-stdin',
  ],
  async run(context) {
    const { actor } = context.caller
    if (actor.type === 'application') return viewApplication(await managed.require(context, actor.id))
    throw new CofferError('not_found', 'No API key is in use: you act as the owner of the vault.')
  },
})

const updateApplication = operation({
  ...managed.updateDeclaration,
  summary: 'Replace the name, permissions and rules of an application; its type and keys stay.',
  input: { ...inputSchema(['id', 'name'], { id, ...body }), needsOneOf: ['permissions', 'rules'] },
  examples: ['coffer app update "starter private" --name backend --permission token:read'],
  check: (input, tools) => records.checkRights(undefined, input, tools),
  async run(context, input, expires) {
    const before = await managed.require(context, input.id)
    refuseErrors(checkGrants(before.type, input))
    return viewApplication(await managed.change(context, before, readBody(input, expires)))
  },
})

const deleteApplication = managed.delete({
  summary: 'Delete an application and revoke its keys immediately.',
  examples: ['coffer app delete "starter public" --yes'],
  confirmation: 'This deletes the application and its keys,',
  before: ({ store }, record) => records.revokeKeys(store, record.keys),
})

const regenerateKey = operation({
  name: 'app regenerate',
  noReveal: 'refused',
  summary: 'Replace all keys of an application by a new one; the old keys are revoked immediately.',
  permissions: ['application:update'],
  route: 'POST /applications/{id}/regenerate',
  input: managed.byId,
  output: applicationOutput,
  examples: ['coffer app regenerate "starter private" --yes'],
  confirmation: 'This revokes all keys of application',
  log: { operation: 'update', message: 'Application key regenerated', derivesNoEvent: true },
  async run(context, input) {
    const before = await managed.require(context, input.id)
    await records.revokeKeys(context.store, before.keys)
    const { key, entry } = await records.issueKey(context, before.id)
    tellKeys(context, 'deleted', before.id, before.keys)
    tellKeys(context, 'created', before.id, [entry])
    return viewApplication(await managed.change(context, before, { keys: [entry] }), key)
  },
})

const listPermissions = operation({
  name: 'app permissions',
  summary: 'List every permission and the application types that can have it.',
  permissions: [],
  route: 'GET /permissions',
  input: inputSchema([], {
    application_type: { ...anApplicationType, description: 'Only permissions that this type can have.' },
  }),
  output: arrayOf(
    component('Permission', ['type', 'description', 'application_types'], {
      type: text,
      description: text,
      application_types: texts,
    }),
  ),
  examples: ['coffer app permissions', 'coffer app permissions --application-type public'],
  async run(_, { application_type: wanted }) {
    const all = Object.entries(PERMISSIONS).map(([type, { description, application_types }]) => {
      return { type, description, application_types: [...application_types] as string[] }
    })
    return all.filter((each) => wanted === undefined || each.application_types.includes(wanted))
  },
})

const keyId = {
  type: 'string',
  refersTo: 'app key',
  description: 'The id of the key, not the key itself.',
} as const
const oneKey = inputSchema(['application_id', 'id'], { application_id: id, id: keyId })
const keyIdExample = `'starter private' "$(coffer app key list 'starter private' -o id)"`

const createKey = operation({
  name: 'app key create',
  noReveal: 'refused',
  summary: 'Create another key of an application and print it, once.',
  details: `An application has at most ${MAX_KEYS} keys. Each has all of its permissions.`,
  permissions: ['application:create'],
  route: 'POST /applications/{application_id}/keys',
  success: 201,
  input: inputSchema(['application_id'], { application_id: id }),
  output: keyOutput,
  examples: ['coffer app key create "starter private"'],
  log: { operation: 'update', message: 'Application key created', derivesNoEvent: true },
  async run(context, input) {
    const application = await managed.require(context, input.application_id)
    const { id, keys } = application
    if (keys.length >= MAX_KEYS)
      throw conflict(`This application has ${MAX_KEYS} keys already. Delete one first.`)
    const { key, entry } = await records.issueKey(context, id)
    await managed.change(context, application, { keys: [entry, ...keys] })
    tellKeys(context, 'created', id, [entry])
    return records.viewKey(entry, key)
  },
})

const listKeys = operation({
  name: 'app key list',
  summary: 'List the keys of an application, newest first, without the keys themselves.',
  permissions: ['application:read'],
  route: 'GET /applications/{application_id}/keys',
  input: inputSchema(['application_id'], { application_id: id, id: filterBy('Only the key with this id.') }),
  output: arrayOf(keyOutput),
  examples: ['coffer app key list "starter private"'],
  async run(context, { application_id, id: ids }) {
    const { keys } = viewApplication(await managed.require(context, application_id))
    return keys.filter((each) => ids?.includes(each.id) !== false)
  },
})

const getKey = operation({
  name: 'app key get',
  summary: 'Get when and by whom a key was created.',
  permissions: ['application:read'],
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

const deleteKey = operation({
  name: 'app key delete',
  summary: 'Revoke a key of an application immediately; its other keys stay.',
  permissions: ['application:delete'],
  route: 'DELETE /applications/{application_id}/keys/{id}',
  input: oneKey,
  examples: [`coffer app key delete ${keyIdExample} --yes`],
  confirmation: 'This revokes a key of an application:',
  log: { operation: 'update', message: 'Application key deleted', derivesNoEvent: true },
  async run(context, input) {
    const { application, key } = await requireKey(context, input)
    await records.revokeKeys(context.store, [key])
    tellKeys(context, 'deleted', application.id, [key])
    await managed.change(context, application, { keys: application.keys.filter((each) => each !== key) })
    return undefined
  },
})

function tellKeys(
  { audit }: Context,
  verb: 'created' | 'deleted',
  application_id: string,
  keys: readonly ApplicationKey[],
): void {
  for (const key of keys) audit.emit({ type: `application.key.${verb}`, about: { ...key, application_id } })
}

/** @throws CofferError `not_found` for an unknown application, and for a key of another */
async function requireKey(context: Context, input: Infer<typeof oneKey>) {
  const application = await managed.require(context, input.application_id)
  const key = application.keys.find(({ id }) => id === input.id)
  if (key === undefined) throw new CofferError('not_found', 'This application has no key with this id.')
  return { application, key }
}

export const noun = {
  name: 'app',
  summary: 'Manage applications: API keys, permissions and access rules',
  groups: { key: 'Create, list and revoke the keys of an application.' },
  operations: [
    createApplication,
    listApplications,
    managed.get('coffer app get "starter private"'),
    updateApplication,
    deleteApplication,
    regenerateKey,
    createKey,
    listKeys,
    getKey,
    deleteKey,
    whoami,
    listPermissions,
  ],
}
