/** The roles of a tenant's members. They are recorded for clients that show them: members have no API key. */

export const ROLES = ['OWNER', 'ADMIN', 'READ_ONLY'] as const
export type Role = (typeof ROLES)[number]

export const GIVEN_ROLES = ['ADMIN', 'READ_ONLY'] as const
export type GivenRole = (typeof GIVEN_ROLES)[number]

/** The role of people who are invited without one. */
export const DEFAULT_ROLE: GivenRole = 'ADMIN'
