/** What access rules decide, written from the sentences of the specification, and rules to try it with. */
import fc from 'fast-check'
import type { Rule, RuleCondition } from '../../src/domain/access.js'
import type { Permission, Transform } from '../../src/domain/permissions.js'
import { permissionsOf } from './vault.js'

const segments = fc.array(fc.constantFrom('a', 'b', 'ab'), { maxLength: 3 })
export const container = segments.map((names) => `/${names.map((name) => `${name}/`).join('')}`)
export const containers = fc.uniqueArray(container, { minLength: 1, maxLength: 3 })
export const granted = fc.uniqueArray(fc.constantFrom(...permissionsOf('private')), {
  minLength: 1,
  maxLength: 4,
})
export const rules = fc.uniqueArray(
  fc.record({
    priority: fc.integer({ min: 1, max: 9 }),
    container,
    transform: fc.constantFrom<Transform>('redact', 'mask', 'reveal'),
    permissions: granted,
  }),
  { selector: ({ priority }) => priority, maxLength: 5 },
)
export const plain = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Permission[]>([]) },
  { weight: 1, arbitrary: granted },
)

/** What the sentences of the specification say, one container after another. */
export function decide(
  grants: { rules: readonly Rule[]; permissions: readonly Permission[] },
  permission: Permission,
  paths: readonly string[],
  id?: string,
) {
  const meets = ({ attribute, operator, value }: RuleCondition, path: string) => {
    const text = attribute === 'id' ? id : path
    return operator === 'equals' ? text === value : text?.slice(0, value.length) === value
  }
  const above = (path: string) => path.split('/').map((_, at, all) => `${all.slice(0, at).join('/')}/`)
  const decided = paths.map((path): Transform | undefined => {
    const fitting = grants.rules.filter(
      (rule) =>
        (rule.conditions?.every((each) => meets(each, path)) ??
          [path, ...above(path)].includes(rule.container!)) &&
        rule.permissions.includes(permission),
    )
    fitting.sort((one, other) => one.priority - other.priority)
    if (fitting[0] !== undefined) return fitting[0].transform
    if (!grants.permissions.includes(permission)) return undefined
    return /:(use|invoke)$/.test(permission) ? 'reveal' : 'mask'
  })
  if (decided.includes(undefined)) return undefined
  return (['redact', 'mask', 'reveal'] as const).find((transform) => decided.includes(transform))
}

export interface Shown {
  id: string
  data?: unknown
}

/** What a reader is shown of the data `secret` under the mask `masked`. */
export function shownUnder(transform: Transform): object {
  if (transform === 'redact') return {}
  return { data: transform === 'reveal' ? 'secret' : 'masked' }
}
