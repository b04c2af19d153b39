/** Shows example tokens as callers see them. Uses the same code as requests, so that the result cannot differ. */
import { decideContainer } from '../../domain/access/access.js'
import type { Permission, Transform } from '../../domain/access/permissions.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { applicationCaller } from '../../framework/caller/authenticate.js'
import { viewToken } from '../token/token-attributes.js'
import type { ExampleContainer } from './example.js'

export const SEES = ['plain', 'masked', 'redacted', 'none'] as const
export type Sees = (typeof SEES)[number]
export const DECIDERS = ['rule', 'permissions', 'nothing', 'expiry'] as const

/** `example`: the data that the caller sees. `rule`: the priority of the rule that decides. */
export interface Cell {
  container: string
  sees: Sees
  example?: unknown
  by: (typeof DECIDERS)[number]
  rule?: number
  description?: string
}

const SEEN: Readonly<Record<Transform, Sees>> = { reveal: 'plain', mask: 'masked', redact: 'redacted' }

/**
 * Uses the same caller as a request with a key of the application. This caller does not return the rule that decides.
 * Therefore `decideContainer` is called again, to find the rule.
 */
export function decideRow(
  tenant: number,
  application: Parameters<typeof applicationCaller>[1],
  permission: Permission,
  containers: readonly ExampleContainer[],
): Cell[] {
  const caller = applicationCaller(tenant, application)
  const descriptions = new Map(application.rules.map(({ priority, description }) => [priority, description]))
  return containers.map(({ container, record, mask }) => {
    const transform = caller.transform(permission, { containers: [container] })
    if (transform === undefined) return { container, sees: 'none', by: 'nothing' }
    const { decidedBy } = decideContainer(application, permission, container)
    const decider: Pick<Cell, 'by' | 'rule' | 'description'> =
      typeof decidedBy === 'number'
        ? { by: 'rule', rule: decidedBy, ...omitUndefined({ description: descriptions.get(decidedBy) }) }
        : { by: 'permissions' }
    return { container, ...showExample(record, transform, mask), ...decider }
  })
}

/** The keys of an expired application are refused. */
export function expiredRow(containers: readonly ExampleContainer[]): Cell[] {
  return containers.map(({ container }) => ({ container, sees: 'none', by: 'expiry' }))
}

function showExample(
  record: ExampleContainer['record'],
  transform: Transform,
  mask: ExampleContainer['mask'],
): Pick<Cell, 'sees' | 'example'> {
  const isUnknown = transform === 'mask' && mask === 'other'
  const example = isUnknown ? undefined : viewToken(record, transform).data
  return { sees: SEEN[transform], ...omitUndefined({ example }) }
}

/**
 * Chooses at most `most` containers: first the containers of rules (`named`), then of tokens (`used`), sorted by name.
 * If `wanted` is given, the wanted containers come first, and only containers below a wanted container follow.
 * `total`: the number of containers without the limit.
 */
export function chooseContainers(
  named: Iterable<string>,
  used: Iterable<string>,
  wanted: readonly string[] | undefined,
  most: number,
): { chosen: string[]; total: number } {
  const isWanted = (container: string) => wanted?.some((each) => container.startsWith(each)) !== false
  const groups = [wanted ?? [], named, used].flatMap((group) => [...group].sort())
  const all = [...new Set(groups)].filter(isWanted)
  return { chosen: all.slice(0, most), total: all.length }
}
