/** Derives management operations of a noun from one declaration of how its records are found, shown and logged. */

import type { Permission } from '../domain/access/permissions.js'
import { matchesName } from '../domain/reactor/formula.js'
import type { EntityType } from '../domain/records/entity-types.js'
import type { RecordOf } from '../domain/records/records.js'
import { readList } from '../framework/list.js'
import {
  type Context,
  type LogEntry,
  type Operation,
  operation,
  type Session,
} from '../framework/operation.js'
import { type List, listOutput, type PageRequest } from '../framework/page.js'
import { requireRecord } from '../framework/require-record.js'
import { type Answer, inputSchema, type Schema, type StringSchema } from '../framework/schema.js'
import type { Condition } from '../storage/store.js'

type Kind = 'application' | 'invitation' | 'member' | 'proxy' | 'reactor' | 'formula'

interface Noun<Name extends string, Path extends string, K extends Kind, O extends Schema> {
  /** The first word of its commands. */
  name: Name
  /** In sentences, with an article. */
  called: string
  /** The beginning of its log messages. */
  title: string
  kind: K
  /** In the log; default: its kind. */
  entity?: EntityType
  path: Path
  /** The permission of all its operations, without the last word. */
  permission: 'application' | 'proxy' | 'reactor' | 'tenant:invitation' | 'tenant:member'
  /** The schema of the property in the path. */
  id: StringSchema
  output: O
  view(context: Context, record: RecordOf[K]): Answer<O> | Promise<Answer<O>>
  /** @throws CofferError `not_found`; default: {@link requireRecord} */
  find?(context: Context, id: string): Promise<RecordOf[K]>
  /** The tenant number of the record; default: the caller's. */
  tenantOf?(context: Context, record: RecordOf[K]): number
}

type One = ReturnType<typeof oneOf>
const oneOf = (id: StringSchema) => inputSchema(['id'], { id })

type Deletion<K extends Kind> = Pick<Operation, 'summary' | 'details' | 'examples' | 'destroys'> & {
  /** Refuses, or removes what belongs to the record. */
  before?(context: Context, record: RecordOf[K]): void | Promise<void>
}

export function manage<
  const Name extends string,
  const Path extends string,
  const K extends Kind,
  const O extends Schema,
>(noun: Noun<Name, Path, K, O>) {
  const { name, title, kind, entity = kind as EntityType, path, permission, output, view } = noun
  const find = noun.find ?? ((context: Context, id: string) => requireRecord(context, kind as 'proxy', id))
  const tenantOf = noun.tenantOf ?? (({ caller }: Context) => caller.tenant)
  const one = oneOf(noun.id)
  const require = (context: Context, id: string) => find(context, id) as Promise<RecordOf[K]>
  const allowed = (verb: string) => [`${permission}:${verb}` as Permission]
  const logged = (operation: 'create' | 'update') =>
    ({ operation, message: `${title} ${operation}d` }) as LogEntry
  return {
    one,
    require,

    /** The beginnings of the declarations of its further operations. */
    creating: {
      name: `${name} create` as const,
      permissions: allowed('create'),
      route: `POST ${path}` as const,
      success: 201,
      output,
      log: logged('create'),
    } as const,
    listing: {
      name: `${name} list` as const,
      permissions: allowed('read'),
      route: `GET ${path}` as const,
      output: listOutput(output),
    } as const,
    updating: {
      name: `${name} update` as const,
      permissions: allowed('update'),
      route: `PUT ${path}/{id}` as const,
      output,
      log: logged('update'),
    } as const,
    patching: {
      name: `${name} patch` as const,
      permissions: allowed('update'),
      route: `PATCH ${path}/{id}` as const,
      contentType: 'application/merge-patch+json',
      log: logged('update'),
    } as const,

    get: (...examples: readonly string[]): Operation<One, O, unknown, `${Name} get`, `GET ${Path}/{id}`> =>
      operation({
        name: `${name} get`,
        summary: `Get ${noun.called} by its id.`,
        permissions: allowed('read'),
        route: `GET ${path}/{id}`,
        input: one,
        output,
        examples,
        log: { operation: 'read', message: `${title} retrieved` },
        run: async (context, { id }) => {
          const record = await require(context, id)
          context.audit.record(entity, record.id)
          return (await view(context, record)) as Answer<O>
        },
      }),

    delete: ({
      before,
      ...declared
    }: Deletion<K>): Operation<One, undefined, unknown, `${Name} delete`, `DELETE ${Path}/{id}`> =>
      operation({
        ...declared,
        name: `${name} delete`,
        permissions: allowed('delete'),
        route: `DELETE ${path}/{id}`,
        input: one,
        log: { operation: 'delete', message: `${title} deleted` },
        run: async (context, { id }) => {
          const record = await require(context, id)
          await before?.(context, record)
          await context.store.remove(kind, tenantOf(context, record), record.id)
          context.audit.record(entity, record.id)
          return undefined
        },
      }),

    /** A page of the records with these ids, a matching name and the condition, in `tenants` (default: the caller's). */
    list: (
      session: Session,
      { id: ids, name: like, ...asked }: PageRequest & { id?: readonly string[]; name?: string },
      tenants: readonly number[] = [session.caller.tenant],
      condition?: Condition,
    ) => {
      const matches = (record: RecordOf[K]) => matchesName((record as { name: string }).name, like!)
      const and = [...(ids === undefined ? [] : [{ ids }]), ...(condition === undefined ? [] : [condition])]
      const listing = {
        kind,
        tenants,
        where: async () => (and.length === 0 ? undefined : { and }),
        matches: like === undefined ? undefined : matches,
        show: (context: Context, record: RecordOf[K]) => view(context, record),
      }
      return readList(session, listing, asked) as Promise<List<Answer<O>>>
    },

    add: async <R extends RecordOf[K]>(context: Context, record: R): Promise<R> => {
      await context.store.insert(kind, tenantOf(context, record), record, { fresh: true })
      context.audit.record(entity, record.id)
      return record
    },

    replace: async <R extends RecordOf[K]>(context: Context, record: R): Promise<R> => {
      await context.store.replace(kind, tenantOf(context, record), record)
      context.audit.record(entity, record.id)
      return record
    },
  }
}

export function created({ caller, date }: Context): { created_by: string; created_at: string } {
  return { created_by: caller.actor.id, created_at: date }
}

export function modified({ caller, date }: Context): { modified_by: string; modified_at: string } {
  return { modified_by: caller.actor.id, modified_at: date }
}

/** Matches records that have one of the values in an indexed field; without `values`, all records. */
export function anyOf(field: string, values: readonly string[] | undefined): Condition | undefined {
  return values && { or: values.map((value) => ({ field, value })) }
}
