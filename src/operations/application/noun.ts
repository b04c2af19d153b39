import { APPLICATION_TYPES, checkGrants, type RequestedGrants } from '../../domain/access/application.js'
import { PERMISSIONS } from '../../domain/access/permissions.js'
import { formatDate } from '../../domain/dates.js'
import { refuseErrors } from '../../domain/property-errors.js'
import { CofferError } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { anyKey } from '../../framework/declaration.js'
import { change, list, query } from '../../framework/operation.js'
import { arrayOf, component, text, texts } from '../../framework/output.js'
import { pageInput } from '../../framework/page.js'
import { filterBy, type Infer, inputSchema, nameOf, onlyOf } from '../../framework/schema.js'
import { whereIn } from '../manage.js'
import * as records from './application-record.js'
import { type ApplicationView, applicationOutput, viewApplication } from './application-record.js'
import { keyOperations } from './keys.js'
import { id, managed } from './managed.js'
import { templateOperations } from './templates.js'

const body = {
  name: nameOf('The name of the application.'),
  permissions: {
    ...records.permissionList,
    description: 'A permission of the application; see coffer app permissions.',
  },
  rules: records.ruleList(
    'An access rule. If several rules grant a permission, the rule with the lowest priority number decides.',
    {
      required: ['priority', 'container', 'transform', 'permissions'],
    },
  ),
  expires_at: { type: 'string', duration: 'ahead', description: 'When the application and its keys expire.' },
} as const
const anApplicationType = { type: 'string', enum: APPLICATION_TYPES } as const

const applicationInput = {
  ...inputSchema(['name', 'type'], {
    ...body,
    type: { ...anApplicationType, description: `One of ${APPLICATION_TYPES.join(', ')}.` },
    create_key: { type: 'boolean', default: true, description: 'Create a key and print it.' },
  }),
  needsOneOf: ['permissions', 'rules'],
} as const

export const createApplication = change({
  ...managed.createDeclaration,
  summary: 'Create an application and print its key, which is shown only once.',
  details:
    'The type limits the permissions of an application. A public application, for web pages and other programs that people\n' +
    'can read, can create and update tokens. A private application, for your servers, can use tokens, reactors and proxies.\n' +
    'A management application can manage the tenant, its members, applications, reactors, proxies, webhooks and keys. To see\n' +
    'all permissions: coffer app permissions.',
  input: applicationInput,
  examples: [
    'coffer app create --name backend --type private --permission token:create --permission token:read',
    `coffer app create --name support --type private --rule '/pci/ mask token:read'`,
  ],
  check: (input, tools) => records.checkRights(input.type, input, tools),
  async run(context, input, expires) {
    return addApplication(context, input, expires)
  },
})

/** `expires`: ms since the epoch. `chosen`: the id and the key of the application, instead of random values. */
export async function addApplication(
  context: Context,
  input: Infer<typeof applicationInput>,
  expires: number | undefined,
  chosen: { id?: string | undefined; key?: string | undefined } = {},
): Promise<ApplicationView> {
  const { id = context.createUuid() } = chosen
  const issued = input.create_key === false ? undefined : await records.issueKey(context, id, chosen.key)
  const keys = issued === undefined ? [] : [issued.entry]
  const attributes = { type: input.type, ...readBody(input, expires), keys }
  const options = { id, fresh: chosen.id === undefined }
  return viewApplication(await managed.add(context, attributes, options), context.now, issued?.key)
}

function readBody(input: RequestedGrants & { name: string }, expires: number | undefined) {
  const expires_at = expires === undefined ? undefined : formatDate(expires)
  return { name: input.name, ...records.readRights(input), expires_at }
}

const listApplications = list({
  ...managed.listDeclaration,
  summary: 'List applications, newest first.',
  input: inputSchema([], {
    id: { ...filterBy('Only the application with this id.'), refersTo: 'app' },
    type: filterBy('Only applications of this type.', onlyOf(APPLICATION_TYPES)),
    ...pageInput(100),
  }),
  examples: ['coffer app list', 'coffer app list --type private'],
  run: (session, { type, ...asked }) => managed.list(session, { ...asked, where: whereIn('type', type) }),
})

const whoami = query({
  name: 'app whoami',
  summary: 'Get the application whose API key is in use.',
  access: anyKey,
  route: 'GET /applications/key',
  output: applicationOutput,
  examples: [
    'coffer app key create "starter private" --fields key -o value | coffer app whoami --api-key-stdin',
  ],
  async run(context) {
    const { actor } = context.caller
    if (actor.type === 'application')
      return viewApplication(await managed.require(context, actor.id), context.now)
    throw new CofferError('not_found', 'No API key is in use: you act as the owner of the vault.')
  },
})

const updateApplication = change({
  ...managed.updateDeclaration,
  summary: 'Replace the name, permissions and rules of an application; its type and keys stay.',
  details: 'Permissions, rules and an expiry that you do not give are removed.',
  input: { ...inputSchema(['id', 'name'], { id, ...body }), needsOneOf: ['permissions', 'rules'] },
  examples: ['coffer app update "starter private" --name backend --permission token:read'],
  check: (input, tools) => records.checkRights(undefined, input, tools),
  async run(context, input, expires) {
    const before = await managed.require(context, input.id)
    refuseErrors(checkGrants(before.type, input))
    return viewApplication(await managed.change(context, before, readBody(input, expires)), context.now)
  },
})

const deleteApplication = managed.delete({
  summary: 'Delete an application and revoke its keys immediately.',
  examples: ['coffer app delete "starter public" --yes'],
  confirmation: 'This deletes, with all of its keys, application',
  before: ({ store }, record) => records.revokeKeys(store, record.keys),
})

const listPermissions = query({
  name: 'app permissions',
  summary: 'List every permission and the application types that can have it.',
  access: anyKey,
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

export const noun = {
  name: 'app',
  summary: 'Manage applications: API keys, permissions and access rules',
  groups: {
    key: 'Create, list and revoke the keys of an application.',
    template: 'Show permissions and rules to copy into a new application.',
  },
  operations: [
    createApplication,
    listApplications,
    managed.get('coffer app get "starter private"'),
    updateApplication,
    deleteApplication,
    ...keyOperations,
    ...templateOperations,
    whoami,
    listPermissions,
  ],
}
