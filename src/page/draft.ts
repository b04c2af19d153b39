/** An application while a person edits it. Attributes that the form cannot show are sent unchanged. */

export type Draft = Record<string, unknown> & { rules?: unknown[]; permissions?: unknown[] }

/** `key` identifies the row while other attributes change. `rule`: as it is sent to the server. */
export interface RuleRow {
  key: number
  rule: Record<string, unknown>
}

export const FORM_ATTRIBUTES = ['priority', 'container', 'transform', 'permissions', 'description']

export const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : [])

const isRule = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Undefined if the form can show the draft. */
export function whyNotShown({ rules, permissions }: Draft): string | undefined {
  if (rules !== undefined && !Array.isArray(rules)) return 'rules is not a list'
  if (permissions !== undefined && !Array.isArray(permissions)) return 'permissions is not a list'
  return listOf(rules).every(isRule) ? undefined : 'a rule is not an object'
}

/** The lowest number comes first, because the server evaluates rules in this order. */
export function toRows(rules: readonly unknown[] | undefined, nextKey: () => number): RuleRow[] {
  const rows = listOf(rules).map((rule) => ({ key: nextKey(), rule: rule as RuleRow['rule'] }))
  return rows.sort((one, other) => priorityOf(one.rule) - priorityOf(other.rule))
}

const priorityOf = ({ priority }: RuleRow['rule']): number =>
  typeof priority === 'number' ? priority : Number.POSITIVE_INFINITY

/** If `value` is undefined, the attribute is removed. */
export function setAttribute(rows: readonly RuleRow[], key: number, name: string, value: unknown): RuleRow[] {
  return rows.map((row) => {
    if (row.key !== key) return row
    const { [name]: _, ...rest } = row.rule
    return { key, rule: value === undefined ? rest : { ...row.rule, [name]: value } }
  })
}

export function addRule(rows: readonly RuleRow[], key: number): RuleRow[] {
  const numbers = rows.map(({ rule }) => priorityOf(rule)).filter(Number.isFinite)
  const rule = {
    ...{ priority: Math.max(0, ...numbers) + 1, container: '/' },
    ...{ transform: 'mask', permissions: ['token:read'] },
  }
  return [...rows, { key, rule }]
}

/** Moves a row up (-1) or down (1). The row and its neighbour exchange their priorities. */
export function moveRule(rows: readonly RuleRow[], key: number, by: -1 | 1): RuleRow[] {
  const at = rows.findIndex((row) => row.key === key)
  const moved = rows[at]
  const other = rows[at + by]
  if (moved === undefined || other === undefined) return [...rows]
  const next = [...rows]
  next[at + by] = { key, rule: { ...moved.rule, priority: other.rule.priority } }
  next[at] = { key: other.key, rule: { ...other.rule, priority: moved.rule.priority } }
  return next
}

/** Attributes of a rule that the form cannot change. */
export function unknownPart(rule: RuleRow['rule']): Record<string, unknown> | undefined {
  const entries = Object.entries(rule).filter(([name]) => !FORM_ATTRIBUTES.includes(name))
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

/** If the text is no date in UTC, returns the text, so that the server refuses it. */
export function dateOf(text: string): string | undefined {
  const ms = Date.parse(`${text}Z`)
  if (text === '') return undefined
  return Number.isNaN(ms) ? text : new Date(ms).toISOString()
}

export function toggle(names: readonly unknown[], name: string, isOn: boolean): unknown[] {
  const others = names.filter((each) => each !== name)
  return isOn ? [...others, name] : others
}
