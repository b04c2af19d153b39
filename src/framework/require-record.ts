/** Reads a record that an operation needs. */
import type { RecordOf } from '../domain/records/records.js'
import { CofferError } from '../errors.js'
import type { Context } from './operation.js'

/** The record with this id in the caller's tenant. @throws CofferError `not_found` */
export async function requireRecord<
  K extends 'application' | 'invitation' | 'member' | 'proxy' | 'reactor' | 'token',
>({ store, caller }: Context, kind: K, id: string): Promise<RecordOf[K]> {
  const record = await store.get(kind, caller.tenant, id)
  if (record === undefined) throw new CofferError('not_found', `There is no ${kind} with this id.`)
  return record
}
