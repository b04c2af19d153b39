export type ApplicationType = 'public' | 'private' | 'management'

const privateHolders = ['private'] as const
const managementHolders = ['management'] as const
const EVERYBODY = ['public', 'private', 'management'] as const

/** Applications may have these permissions, but Coffer does not emulate the operations that require them. */
const WITHOUT_EFFECT = {
  'connections:apple-pay': ['invoke', 'manage'],
  'connections:google-pay': ['invoke'],
  enrollment: ['get', 'create'],
} as const
type AreaWithoutEffect = keyof typeof WITHOUT_EFFECT
type PermissionWithoutEffect = {
  [Area in AreaWithoutEffect]: `${Area}:${(typeof WITHOUT_EFFECT)[Area][number]}`
}[AreaWithoutEffect]
interface PermissionEntry {
  description: string
  /** The types of applications for which the permission has an effect. */
  application_types: readonly ApplicationType[]
  /** Applications of the other types may also have the permission, but without effect. */
  isAcceptedEverywhere?: true
}

const WITH_EFFECT = {
  'token:create': { description: 'Create tokens', application_types: ['public', 'private'] },
  'token:read': { description: 'Read tokens', application_types: privateHolders },
  'token:update': { description: 'Update tokens', application_types: ['public', 'private'] },
  'token:delete': { description: 'Delete tokens', application_types: privateHolders },
  'token:search': { description: 'Search tokens', application_types: privateHolders },
  'token:use': { description: 'Use tokens in reactors and proxies', application_types: privateHolders },
  'reactor:invoke': { description: 'Invoke reactors with tokens', application_types: privateHolders },
  'proxy:invoke': { description: 'Call proxies with tokens', application_types: privateHolders },
  'token-intent:create': { description: 'Create token intents', application_types: ['public', 'private'] },
  'token-intent:read': { description: 'Read token intents', application_types: privateHolders },
  'token-intent:delete': { description: 'Delete token intents', application_types: privateHolders },
  '3ds:session:create': {
    description: 'Create 3DS sessions',
    application_types: ['public', 'private'],
    isAcceptedEverywhere: true,
  },
  '3ds:session:read': {
    description: 'Read 3DS sessions',
    application_types: privateHolders,
    isAcceptedEverywhere: true,
  },
  '3ds:session:authenticate': {
    description: 'Authenticate 3DS sessions',
    application_types: privateHolders,
    isAcceptedEverywhere: true,
  },
  'account-updater:real-time:invoke': {
    description: 'Ask the account updater about a card',
    application_types: privateHolders,
  },
  'account-updater:job:create': {
    description: 'Create jobs of the account updater',
    application_types: privateHolders,
  },
  'account-updater:job:read': {
    description: 'Read jobs of the account updater',
    application_types: privateHolders,
  },
  'network-token:create': { description: 'Create network tokens', application_types: privateHolders },
  'network-token:read': { description: 'Read network tokens', application_types: privateHolders },
  'network-token:reveal': {
    description: 'Read the numbers of network tokens',
    application_types: privateHolders,
  },
  'network-token:delete': { description: 'Delete network tokens', application_types: privateHolders },
  'network-token:cryptogram': {
    description: 'Create cryptograms of network tokens',
    application_types: privateHolders,
  },
  'network-token:suspend': { description: 'Suspend network tokens', application_types: privateHolders },
  'network-token:resume': { description: 'Resume network tokens', application_types: privateHolders },
  'apple-pay:create': { description: 'Store cards of Apple Pay', application_types: ['public', 'private'] },
  'apple-pay:read': { description: 'Read cards of Apple Pay, masked', application_types: privateHolders },
  'apple-pay:reveal': {
    description: 'Read cards of Apple Pay in plaintext',
    application_types: privateHolders,
  },
  'apple-pay:delete': { description: 'Delete cards of Apple Pay', application_types: privateHolders },
  'apple-pay:unlink': { description: 'Unlink cards of Apple Pay', application_types: privateHolders },
  'apple-pay:session': {
    description: 'Begin payments with Apple Pay',
    application_types: ['public', 'private'],
  },
  'apple-pay:manage': {
    description: 'Manage domains, merchants and certificates of Apple Pay',
    application_types: privateHolders,
  },
  'google-pay:create': { description: 'Store cards of Google Pay', application_types: ['public', 'private'] },
  'google-pay:read': { description: 'Read cards of Google Pay, masked', application_types: privateHolders },
  'google-pay:reveal': {
    description: 'Read cards of Google Pay in plaintext',
    application_types: privateHolders,
  },
  'google-pay:delete': { description: 'Delete cards of Google Pay', application_types: privateHolders },
  'google-pay:manage': {
    description: 'Manage merchants and certificates of Google Pay',
    application_types: privateHolders,
  },
  'documents:create': { description: 'Create documents', application_types: ['public', 'private'] },
  'documents:read': {
    description: 'Read documents without their content',
    application_types: privateHolders,
  },
  'documents:reveal': { description: 'Read the content of documents', application_types: privateHolders },
  'documents:delete': { description: 'Delete documents', application_types: privateHolders },
  ...crudPermissions({ application: 'applications', reactor: 'reactors and formulas', proxy: 'proxies' }),
  'tenant:read': { description: 'Read the tenant', application_types: managementHolders },
  'tenant:update': { description: 'Update the tenant', application_types: managementHolders },
  'tenant:delete': { description: 'Delete the tenant', application_types: managementHolders },
  'tenant:member:read': { description: 'Read members', application_types: managementHolders },
  'tenant:member:update': { description: 'Change the role of members', application_types: managementHolders },
  'tenant:member:delete': { description: 'Remove members', application_types: managementHolders },
  ...crudPermissions({ 'tenant:merchant': 'merchants' }),
  'tenant:invitation:create': { description: 'Create invitations', application_types: managementHolders },
  'tenant:invitation:read': { description: 'Read invitations', application_types: managementHolders },
  'tenant:invitation:update': { description: 'Resend invitations', application_types: managementHolders },
  'tenant:invitation:delete': { description: 'Delete invitations', application_types: managementHolders },
  'log:read': { description: 'Read logs', application_types: managementHolders },
  'report:read': { description: 'Read reports', application_types: managementHolders },
  ...crudPermissions({ webhooks: 'webhooks', webhook: 'webhooks' }),
  'keys:create': {
    description: 'Create keys for encryption by clients',
    application_types: managementHolders,
  },
  'keys:read': { description: 'Read keys for encryption by clients', application_types: managementHolders },
  'keys:delete': {
    description: 'Delete keys for encryption by clients',
    application_types: managementHolders,
  },
} as const satisfies Record<string, PermissionEntry>

/** `areas` maps the prefix of permissions to the noun in their descriptions. */
function crudPermissions<const Area extends string>(areas: Record<Area, string>) {
  const entries = Object.entries<string>(areas).flatMap(([area, things]) =>
    ['Create', 'Read', 'Update', 'Delete'].map((verb): [string, PermissionEntry] => {
      const description = `${verb} ${things}`
      return [`${area}:${verb.toLowerCase()}`, { description, application_types: managementHolders }]
    }),
  )
  type Verb = 'create' | 'read' | 'update' | 'delete'
  return Object.fromEntries(entries) as Record<`${Area}:${Verb}`, PermissionEntry>
}

export type Permission = keyof typeof WITH_EFFECT | PermissionWithoutEffect

const withoutEffect = Object.entries(WITHOUT_EFFECT).flatMap(([area, verbs]) =>
  verbs.map((verb): [PermissionWithoutEffect, PermissionEntry] => {
    const name = `${area}:${verb}` as PermissionWithoutEffect
    return [name, { description: 'Accepted, without effect here', application_types: EVERYBODY }]
  }),
)

export const PERMISSIONS = {
  ...WITH_EFFECT,
  ...(Object.fromEntries(withoutEffect) as Record<PermissionWithoutEffect, PermissionEntry>),
}

export function permissionsOf(type: ApplicationType, { withEffect = false } = {}): Permission[] {
  return (Object.keys(withEffect ? WITH_EFFECT : PERMISSIONS) as Permission[]).filter((name) => {
    const { application_types, isAcceptedEverywhere }: PermissionEntry = PERMISSIONS[name]
    return application_types.includes(type) || (isAcceptedEverywhere === true && !withEffect)
  })
}

/** Earlier versions also stored permissions that have no effect for the type of the application. */
export function hasEffect(permission: Permission, type: ApplicationType): boolean {
  const { application_types }: PermissionEntry = PERMISSIONS[permission]
  return application_types.includes(type)
}

/**
 * Permissions to pass the data of tokens to a reactor (`reactor:invoke`), through a proxy (`proxy:invoke`), or to both
 * (`token:use`).
 */
export const USE_PERMISSIONS: readonly Permission[] = ['token:use', 'reactor:invoke', 'proxy:invoke']

export const TRANSFORMS = ['redact', 'mask', 'reveal'] as const

export type Transform = (typeof TRANSFORMS)[number]

export function stricterTransform(a: Transform, b: Transform): Transform {
  return TRANSFORMS.indexOf(a) <= TRANSFORMS.indexOf(b) ? a : b
}

export const ROLES = ['OWNER', 'ADMIN', 'READ_ONLY'] as const
export type Role = (typeof ROLES)[number]

export const GIVEN_ROLES = ['ADMIN', 'READ_ONLY'] as const
export type GivenRole = (typeof GIVEN_ROLES)[number]

export const DEFAULT_ROLE: GivenRole = 'ADMIN'
