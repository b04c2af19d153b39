/** Applications: callers with an API key, permissions and access rules. */
import { APPLICATION_TYPES, checkGrants, MAX_RULES } from '../../domain/access/application.js'
import { PERMISSIONS } from '../../domain/access/permissions.js'
import { refuseErrors } from '../../domain/property-errors.js'
import { CofferError } from '../../errors.js'
import { type Context, operation } from '../../framework/operation.js'
import { arrayOf, component, text, texts } from '../../framework/output.js'
import { pageInput } from '../../framework/page.js'
import { filterBy, type Infer, idOf, inputSchema } from '../../framework/schema.js'
import { anyOf, created, manage, modified } from '../manage.js'
import {
  type ApplicationView,
  applicationOutput,
  checkApplication,
  issueKey,
  permissionList,
  readGrants,
  replaceKeys,
  revokeKeys,
  ruleProperties,
  viewApplication,
} from './application-record.js'

const id = idOf('app', 'The id of the application, or its name.')
const managed = manage({
  name: 'app',
  called: 'an application',
  title: 'Application',
  kind: 'application',
  path: '/applications',
  permission: 'application',
  id,
  output: applicationOutput,
  view: (_, record) => viewApplication(record),
})

const permissionOutput = component('Permission', ['type', 'description', 'application_types'], {
  type: text,
  description: text,
  application_types: texts,
})

const body = {
  name: { type: 'string', minLength: 1, maxLength: 200, description: 'A display name.' },
  permissions: {
    ...permissionList,
    flag: 'permission',
    description: 'A permission of the application; see coffer app permissions.',
  },
  rules: {
    type: 'array',
    maxItems: MAX_RULES,
    flag: 'rule',
    description: 'An access rule as JSON; the one with the lowest priority number applies.',
    items: {
      type: 'object',
      properties: ruleProperties,
      required: ['priority', 'container', 'transform', 'permissions'],
      // An unknown property may be meant to restrict the rule, so it is refused rather than ignored.
      additionalProperties: false,
    },
  },
  expires_at: { type: 'string', duration: 'ahead', description: 'When its keys expire.' },
} as const

const applicationInput = {
  ...inputSchema(['name', 'type'], {
    ...body,
    type: {
      type: 'string',
      enum: APPLICATION_TYPES,
      description: `One of ${APPLICATION_TYPES.join(', ')}.`,
    },
    create_key: { type: 'boolean', default: true, description: 'Create its first key.' },
  }),
  needsOneOf: ['permissions', 'rules'],
} as const

export const createApplication = operation({
  ...managed.creating,
  summary: 'Create an application and print its key, which is shown only once.',
  input: applicationInput,
  examples: [
    'coffer app create --name backend --type private --permission token:create --permission token:read',
    `coffer app create --name support --type private --rule '{"priority":1,"container":"/pci/","transform":"mask","permissions":["token:read"]}'`,
  ],
  check: (input, tools) => checkApplication(input.type, input, tools),
  run: (context, input, expires) => addApplication(context, input, expires),
})

/** Creates an application, with the key `chosen` if given. `expires` is the result of {@link checkApplication}. */
export async function addApplication(
  context: Context,
  input: Infer<typeof applicationInput>,
  expires: number | undefined,
  chosen?: string,
): Promise<ApplicationView> {
  const { id: tenant_id } = await context.tenant()
  const id = context.createUuid()
  const issued = input.create_key === false ? undefined : await issueKey(context, id, chosen)
  const grants = readGrants(input, expires)
  const keys = issued === undefined ? [] : [issued.entry]
  const record = { id, tenant_id, type: input.type, ...grants, keys, ...created(context) }
  return viewApplication(await managed.add(context, record), issued?.key)
}

export const listApplications = operation({
  ...managed.listing,
  summary: 'List applications, newest first.',
  input: inputSchema([], {
    id: { ...filterBy('Only the application with this id.'), refersTo: 'app' },
    type: filterBy('Only applications of this type.'),
    ...pageInput(100),
  }),
  examples: ['coffer app list', 'coffer app list --type private'],
  runDetached: (session, { type, ...asked }) => managed.list(session, asked, undefined, anyOf('type', type)),
})

export const whoami = operation({
  name: 'app whoami',
  summary: 'Get the application whose API key is in use.',
  permissions: [],
  route: 'GET /applications/key',
  input: inputSchema([], {}),
  output: applicationOutput,
  examples: [
    'coffer app key create "starter private" --fields key -o value | coffer app whoami --api-key-stdin',
  ],
  async run(context) {
    const { actor } = context.caller
    if (actor.type !== 'application')
      throw new CofferError('not_found', 'No API key is in use: you act as the owner of the vault.')
    return viewApplication(await managed.require(context, actor.id))
  },
})

export const getApplication = managed.get('coffer app get "starter private"')

export const updateApplication = operation({
  ...managed.updating,
  summary: 'Replace the name, permissions and rules of an application; its type and keys stay.',
  input: { ...inputSchema(['id', 'name'], { id, ...body }), needsOneOf: ['permissions', 'rules'] },
  examples: ['coffer app update "starter private" --name backend --permission token:read'],
  check: (input, tools) => checkApplication(undefined, input, tools),
  async run(context, input, expires) {
    const before = await managed.require(context, input.id)
    refuseErrors(checkGrants(before.type, input))
    const { expires_at: _, ...kept } = before
    const record = { ...kept, ...readGrants(input, expires), ...modified(context) }
    return viewApplication(await managed.replace(context, record))
  },
})

export const deleteApplication = managed.delete({
  summary: 'Delete an application and revoke its keys immediately.',
  examples: ['coffer app delete "starter public" --yes'],
  destroys: 'This deletes the application and its keys,',
  before: ({ store }, record) => revokeKeys(store, record.keys),
})

export const regenerateKey = operation({
  name: 'app regenerate',
  summary: 'Replace all keys of an application by a new one; the old keys are revoked immediately.',
  permissions: ['application:update'],
  route: 'POST /applications/{id}/regenerate',
  input: managed.one,
  output: applicationOutput,
  examples: ['coffer app regenerate "starter private" --yes'],
  destroys: 'This revokes all keys of application',
  log: { operation: 'update', message: 'Application key regenerated' },
  async run(context, input) {
    const before = await managed.require(context, input.id)
    await revokeKeys(context.store, before.keys)
    const { key, entry } = await issueKey(context, before.id)
    return viewApplication(await replaceKeys(context, before, [entry]), key)
  },
})

export const listPermissions = operation({
  name: 'app permissions',
  summary: 'List every permission and the application types that can have it.',
  permissions: [],
  route: 'GET /permissions',
  input: inputSchema([], {
    application_type: {
      type: 'string',
      enum: APPLICATION_TYPES,
      description: 'Only permissions that this type can have.',
    },
  }),
  output: arrayOf(permissionOutput),
  examples: ['coffer app permissions', 'coffer app permissions --application-type public'],
  async run(_, input) {
    const wanted = input.application_type
    return Object.entries(PERMISSIONS)
      .map(([type, { description, application_types }]) => ({
        type,
        description,
        application_types: [...application_types] as string[],
      }))
      .filter(({ application_types }) => wanted === undefined || application_types.includes(wanted))
  },
})
