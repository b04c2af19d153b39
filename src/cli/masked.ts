import { decideTransform, type Grants } from '../domain/access/access.js'
import type { TokenView } from '../operations/token/token-attributes.js'
import type { Task } from './task.js'

export type IsMasked = (token: TokenView) => boolean

/** Tells of a token whether its data is masked; undefined if none is. All are for a session, which cannot ask. */
export async function findMasked({ ask, key, options }: Task): Promise<IsMasked | undefined> {
  if (key === undefined) return options.reveal === true ? undefined : () => true
  const grants = (await ask({}, 'app whoami').catch(() => ({}))) as Partial<Grants> | null
  const { rules = [], permissions = [] } = grants ?? {}
  return (token) => decideTransform({ rules, permissions }, 'token:read', token) !== 'reveal'
}
