/**
 * Derives the management operations of a noun from one declaration. `get` and `delete` are complete operations. For
 * create, list, update and patch, this module provides a declaration to spread and functions for the handlers.
 */

import type { Permission } from '../domain/access/permissions.js'
import { omitUndefined } from '../domain/omit-undefined.js'
import type { EntityType } from '../domain/records/log-record.js'
import type { RecordOf } from '../domain/records/records.js'
import type { Audit } from '../domain/records/token-record.js'
import { matchesName } from '../domain/text/display-name.js'
import type { Context, Session } from '../framework/context.js'
import { type Declaration, requires, requiresAny } from '../framework/declaration.js'
import type { EncodedJson } from '../framework/limits.js'
import { readList } from '../framework/list.js'
import { change, query } from '../framework/operation.js'
import { type List, listOutput, type PageRequest } from '../framework/page.js'
import { type Answer, inputSchema, type Schema, type StringSchema } from '../framework/schema.js'
import { requireRecord } from '../framework/unit.js'
import type { Condition, PutOptions } from '../storage/store.js'

type Kind = Exclude<keyof RecordOf, 'log'>

/** The property `entity` is required if the log has no entity type with the name of the kind. */
type NamesEntity<K extends Kind> = K extends EntityType ? unknown : { entity: EntityType }

type PermissionNoun = { [P in Permission]: P extends `${infer Name}:delete` ? Name : never }[Permission]

interface Noun<Name extends string, Path extends string, K extends Kind, O extends Schema> {
  name: Name
  kind: K
  /** The entity type in the log. The default is `kind`. */
  entity?: EntityType
  path: Path
  /** The part before the last colon in permissions such as `application:read`. */
  permission: PermissionNoun
  /** A second spelling of `permission`. A caller needs only one of the two permissions. */
  alsoPermission?: PermissionNoun
  id: StringSchema
  output: O
  view(context: Context, record: RecordOf[K]): Answer<O> | Promise<Answer<O>>
  /** Finds the record with this id. The default is {@link requireRecord}. @throws CofferError `not_found` */
  find?(context: Context, id: string): Promise<RecordOf[K]>
  /** The number of the record's tenant. The default is the caller's tenant. */
  tenantOf?(context: Context, record: RecordOf[K]): number
}

export interface Filters<R> extends Pick<PageRequest, 'page' | 'size'> {
  id?: readonly string[]
  name?: string
  where?: Condition | undefined
  matches?: ((record: R, context: Context) => boolean) | undefined
}

/**
 * Each attribute must be present, even if its value is undefined. An attribute with the value undefined is not
 * stored.
 */
export type Attributes<R> = {
  [Name in Exclude<keyof R, 'id' | 'tenant_id' | keyof Audit>]:
    | R[Name]
    | (undefined extends R[Name] ? undefined : never)
}

export type Deletion<R> = Pick<Declaration, 'summary' | 'details' | 'examples' | 'log'> & {
  confirmation?: string
  /** Runs before a record is deleted. Throws an error to refuse the deletion, or removes dependent records. */
  before?(context: Context, record: R): void | Promise<void>
}

function recordsOf<const K extends Kind, const O extends Schema>(noun: Noun<string, string, K, O>) {
  const { kind, entity = kind as EntityType, view } = noun
  const find = noun.find ?? ((context: Context, id: string) => requireRecord(context, kind, id))
  const tenantOf = noun.tenantOf ?? (({ caller }: Context) => caller.tenant)
  return {
    require: (context: Context, id: string) => find(context, id) as Promise<RecordOf[K]>,

    /** The default of `tenants` is the caller's tenant. If `name` is given, `matches` has no effect. */
    list: (
      session: Session,
      { id: ids, name, where, matches, ...paging }: Filters<RecordOf[K]>,
      tenants?: readonly number[],
    ) => {
      const and = [ids && { ids }, where].filter((each) => each !== undefined)
      const isNamed = (record: RecordOf[K]) => matchesName((record as { name: string }).name, name!)
      const listing = {
        kind,
        ...(tenants && { tenants }),
        where: async () => (and.length === 0 ? undefined : { and }),
        matches: name === undefined ? matches : isNamed,
        show: view,
      }
      return readList(session, listing, paging) as Promise<List<Answer<O>> | EncodedJson>
    },

    /** `options`: see {@link chosenId}. */
    add: async (
      context: Context,
      attributes: Attributes<RecordOf[K]>,
      { id = context.createUuid(), ...options }: { id?: string } & PutOptions = {},
    ) => {
      const { actor } = context.caller
      const owner = noun.tenantOf === undefined ? { tenant_id: (await context.tenant()).id } : {}
      const made = { created_by: actor.id, created_at: context.date }
      const record = omitUndefined({ id, ...owner, ...attributes, ...made }) as RecordOf[K]
      await context.store.insert(kind, tenantOf(context, record), record, { fresh: true, ...options })
      context.audit.record(entity, record.id)
      return record
    },

    /** An undefined attribute is removed. */
    change: async (
      context: Context,
      before: RecordOf[K],
      attributes: Partial<Attributes<RecordOf[K]>>,
    ): Promise<RecordOf[K]> => {
      const record = omitUndefined({ ...before, ...attributes, ...modified(context) }) as RecordOf[K]
      await context.store.replace(kind, tenantOf(context, record), record)
      context.audit.record(entity, record.id)
      return record
    },

    remove: async (context: Context, record: RecordOf[K]): Promise<void> => {
      await context.store.remove(kind, tenantOf(context, record), record.id)
      context.audit.record(entity, record.id)
    },
  }
}

export function manage<
  const Name extends string,
  const Path extends string,
  const K extends Kind,
  const O extends Schema,
>(noun: Noun<Name, Path, K, O> & NamesEntity<K>) {
  const { kind, entity = kind as EntityType, path, output, view } = noun
  const records = recordsOf<K, O>(noun)
  const byId = inputSchema(['id'], { id: noun.id })
  const label = entity.replaceAll('_', ' ')
  const access = (action: string) => {
    const permission = `${noun.permission}:${action}` as Permission
    if (noun.alsoPermission === undefined) return requires(permission)
    return requiresAny(permission, `${noun.alsoPermission}:${action}` as Permission)
  }
  const declared = <V extends string, R extends string>(verb: V, action: string, route: R) => ({
    name: `${noun.name} ${verb}` as const,
    access: access(action),
    route,
  })
  const title = label.charAt(0).toUpperCase() + label.slice(1)
  const log = <O extends 'create' | 'read' | 'update' | 'delete'>(operation: O, done: string) =>
    ({ log: { operation, message: `${title} ${done}` } }) as const
  const updated = log('update', 'updated')
  return {
    ...records,
    byId,
    createDeclaration: {
      ...declared('create', 'create', `POST ${path}` as const),
      ...log('create', 'created'),
      http: { status: 201 } as const,
      output,
    },
    listDeclaration: { ...declared('list', 'read', `GET ${path}` as const), output: listOutput(output) },
    updateDeclaration: { ...declared('update', 'update', `PUT ${path}/{id}` as const), ...updated, output },
    patchDeclaration: {
      ...declared('patch', 'update', `PATCH ${path}/{id}` as const),
      ...updated,
      http: { body: { types: ['application/merge-patch+json'] } } as const,
    },

    get: (...examples: readonly string[]) =>
      query({
        ...declared('get', 'read', `GET ${path}/{id}` as const),
        ...log('read', 'retrieved'),
        summary: `Get the ${label} with this id.`,
        input: byId,
        output,
        examples,
        run: async (context, { id }) => {
          const record = await records.require(context, id)
          context.audit.record(entity, record.id)
          return (await view(context, record)) as Answer<O>
        },
      }),

    delete: ({ before, confirmation, ...deletion }: Deletion<RecordOf[K]>) =>
      change({
        ...declared('delete', 'delete', `DELETE ${path}/{id}` as const),
        ...log('delete', 'deleted'),
        ...deletion,
        input: byId,
        cli: omitUndefined({ confirmation }),
        run: async (context, { id }) => {
          const record = await records.require(context, id)
          await before?.(context, record)
          await records.remove(context, record)
          return undefined
        },
      }),
  }
}

/** A chosen id can already belong to another record. With `fresh: false`, the insertion checks this. */
export function chosenId(id: string | undefined): { id?: string; fresh?: boolean } {
  return id === undefined ? {} : { id, fresh: false }
}

export function modified({ caller, date }: Context): { modified_by: string; modified_at: string } {
  return { modified_by: caller.actor.id, modified_at: date }
}

export function whereIn(field: string, values: readonly string[] | undefined): Condition | undefined {
  return values && { or: values.map((value) => ({ field, value })) }
}
