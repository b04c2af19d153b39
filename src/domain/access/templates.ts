import type { ContainerRule } from './access.js'
import { type ApplicationType, type Permission, permissionsOf } from './permissions.js'

export interface ApplicationTemplate {
  id: string
  name: string
  description: string
  application_type: ApplicationType
  template_type: 'official'
  /** Whether the template suits the first application of its type in a tenant. */
  is_starter: boolean
  rules: ContainerRule[]
  permissions: Permission[]
}

const READING: Permission[] = ['token:read', 'token:search']

/** The ids must never change, because clients store the ids. */
export function listTemplates(): ApplicationTemplate[] {
  return [
    {
      id: '6f0f6a3e-7c0e-4f0c-9a55-2f1f6f3b7d01',
      name: 'Read only',
      description: 'Reads and searches tokens, and sees masked data.',
      application_type: 'private',
      template_type: 'official',
      is_starter: false,
      rules: [ruleOf('mask', READING)],
      permissions: [],
    },
    {
      id: '6f0f6a3e-7c0e-4f0c-9a55-2f1f6f3b7d02',
      name: 'Full private',
      description: 'Has every permission of a private application, and sees data in plaintext.',
      application_type: 'private',
      template_type: 'official',
      is_starter: true,
      rules: [ruleOf('reveal', permissionsOf('private', { withEffect: true }))],
      permissions: [],
    },
    {
      id: '6f0f6a3e-7c0e-4f0c-9a55-2f1f6f3b7d03',
      name: 'Public',
      description: 'Has every permission of a public application, for web pages and apps.',
      application_type: 'public',
      template_type: 'official',
      is_starter: true,
      rules: [],
      permissions: permissionsOf('public', { withEffect: true }),
    },
    {
      id: '6f0f6a3e-7c0e-4f0c-9a55-2f1f6f3b7d04',
      name: 'Management',
      description: 'Manages the tenant, its members, applications, reactors, proxies, webhooks and keys.',
      application_type: 'management',
      template_type: 'official',
      is_starter: true,
      rules: [],
      permissions: permissionsOf('management', { withEffect: true }),
    },
  ]
}

function ruleOf(transform: 'mask' | 'reveal', permissions: Permission[]): ContainerRule {
  return { description: 'All containers', priority: 1, container: '/', transform, permissions }
}
