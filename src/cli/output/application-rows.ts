/** Applications as rows of a table for people: their permissions and rules are one column. */
import { summarizeRights } from '../../domain/access/rule-text.js'
import type { ApplicationView } from '../../operations/application/application-record.js'
import { formatAge, formatAhead } from './token-rows.js'

/** `nowMs`: for times, which are relative. */
export function summarizeApplications(applications: readonly unknown[], nowMs: number) {
  const rows = (applications as readonly ApplicationView[]).map((application) => {
    const { id, name, type, created_at, expires_at } = application
    return {
      id,
      name,
      type,
      rights: summarizeRights(rightsOf(application)),
      created: formatAge(created_at, nowMs),
      expires: expires_at === undefined ? '' : formatAhead(expires_at, nowMs),
    }
  })
  const ends = rows.some(({ expires }) => expires !== '') ? ['expires'] : []
  return { rows, columns: ['id', 'name', 'type', 'rights', 'created', ...ends] }
}

/** A server of another version may leave out what is empty. */
function rightsOf({ permissions = [], rules = [] }: ApplicationView): Parameters<typeof summarizeRights>[0] {
  return { permissions, rules } as Parameters<typeof summarizeRights>[0]
}
