/** What log records speak of, by the name that they carry, with the name for people. */
export const ENTITY_TYPES = {
  application: 'Application',
  bank: 'Bank',
  card: 'Card',
  invitation: 'Invitation',
  member: 'Member',
  proxy: 'Proxy',
  reactor: 'Reactor',
  reactor_formula: 'ReactorFormula',
  tenant: 'Tenant',
  token: 'Token',
} as const

export type EntityType = keyof typeof ENTITY_TYPES
