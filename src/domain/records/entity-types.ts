/** The types of entities in log records, each with its name for people. */
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
