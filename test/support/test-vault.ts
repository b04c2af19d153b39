/**
 * A vault in memory for tests of operations. The owner and the applications call operations by name, as programs that
 * use the library do, without a socket.
 */

import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import { ControlState } from '../../src/control/control-state.js'
import type { Rule } from '../../src/domain/access/access.js'
import {
  type ApplicationType,
  permissionsOf as allPermissionsOf,
  type Permission,
} from '../../src/domain/access/permissions.js'
import { CofferError } from '../../src/errors.js'
import type { Caller } from '../../src/framework/caller/caller.js'
import { perform } from '../../src/framework/perform.js'
import type { RegisteredOperation } from '../../src/framework/registry.js'
import { type Schema, toJsonSchema } from '../../src/framework/schema.js'
import { describeComponents } from '../../src/http/openapi/openapi.js'
import { type AskOptions, Coffer } from '../../src/library/coffer.js'
import { type OperationName, type ResultOf, registry } from '../../src/operations/all.js'
import { createTenant } from '../../src/operations/tenant/tenant-create.js'
import type { App } from '../../src/vault/app.js'
import { openEphemeral } from './ephemeral.js'

export const START = Date.parse('2030-01-15T12:00:00Z')

type Input = Record<string, unknown>

export interface Grants {
  permissions?: readonly Permission[]
  rules?: readonly Rule[]
  expires_at?: string
}

/**
 * Performs an operation. If the name of the operation is a literal, the result has the declared type of the operation.
 */
interface Ask {
  <N extends OperationName>(name: N, input?: Input, tenant?: string): Promise<ResultOf<N>>
  (name: string, input?: Input, tenant?: string): Promise<unknown>
}

interface AskAs {
  <N extends OperationName>(key: string, name: N, input?: Input): Promise<ResultOf<N>>
  (key: string, name: string, input?: Input): Promise<unknown>
}

export type TestVault = Awaited<ReturnType<typeof openTestVault>>

/** Returns all permissions that have an effect for a type of application. */
export function permissionsOf(type: ApplicationType): Permission[] {
  return allPermissionsOf(type, { withEffect: true })
}

/** A rule that lets a private application do everything and see all data in plaintext. */
export const REVEALS_ALL = {
  priority: 1,
  container: '/',
  transform: 'reveal' as const,
  permissions: permissionsOf('private'),
}

export async function openTestVault() {
  const clock = { now: START }
  const app = await openEphemeral({ tenantName: 'default', clock: () => clock.now })
  /** Returns the status and the text of the answer or of the error. */
  const settle = async (caller: () => Promise<Caller>, name: string, input: Input = {}) => {
    const operation = requireOperation(name)
    try {
      const { status, result, headers } = await perform(app, await caller(), operation, input, 'trace')
      if (headers === undefined) checkOutput(operation, result)
      return { status, text: JSON.stringify(result) ?? '' }
    } catch (error) {
      if (!(error instanceof CofferError)) throw error
      return { status: error.status, text: JSON.stringify([error.message, error.errors]) }
    }
  }
  const opened = { control: new ControlState(app), keys: {}, options: {} }
  const coffer = new Coffer(opened, await app.tenant())
  const askBy = async (name: string, input: Input, options: AskOptions) => {
    const result: unknown = await coffer.ask(name as OperationName, input, options)
    // The response of reactor code has no declared schema.
    if ((result as { res?: object } | undefined)?.res === undefined)
      checkOutput(requireOperation(name), result)
    return result
  }
  /**
   * Performs an operation as the owner, who sees all data. Without `tenant`, the operation is performed in the first
   * tenant.
   */
  const ask = ((name: string, input: Input = {}, tenant?: string) =>
    askBy(name, input, { reveal: true, ...(tenant && { tenant }) })) as Ask
  return {
    app,
    clock,
    ask,
    askAs: ((key: string, name: string, input: Input = {}) => askBy(name, input, { key })) as AskAs,
    settle,
    statusOf: async (...asked: Parameters<typeof settle>) => (await settle(...asked)).status,
    textOf: async (...asked: Parameters<typeof settle>) => (await settle(...asked)).text,
    createTenant: async (name: string) => {
      const keys = app.generateTenantKeys()
      const { createUuid } = app
      return (await app.store.write((store) => createTenant(store, { name, keys, createUuid }))).id
    },
    createApplication: async (type: ApplicationType, grants: Grants, tenant?: string) => {
      const input = { name: `a ${type} application`, type, ...grants }
      return (await ask('app create', input, tenant)) as { id: string; key: string }
    },
  }
}

/** Changes a setting of the vault as its owner. The value `undefined` removes the setting. */
export async function setSetting(app: App, name: string, value: string | undefined): Promise<void> {
  const asked =
    value === undefined
      ? { operation: 'config unset', input: { name } }
      : { operation: 'config set', input: { name, value } }
  await app.ask({ ...asked, as: { reveal: false } })
}

/** Returns a value that fits the schema. */
export function sampleOf(schema: Schema): unknown {
  if (schema.type === undefined) return 'data'
  if (schema.type === 'string')
    return schema.enum?.at(-1) ?? (schema.format === 'uuid' ? '9a1f6a2e-4b1c-4d55-8e0f-0b7a3f0c1d2e' : 'name')
  if (schema.type === 'array') return []
  if (schema.type === 'boolean') return true
  if (schema.type !== 'object') return schema.minimum ?? 1
  const { properties = {}, required = [] } = schema
  return Object.fromEntries(required.map((name) => [name, sampleOf(properties[name]!)]))
}

export function requireOperation(name: string) {
  const definition = registry.find(name)
  if (definition === undefined) throw new Error(`there is no operation "${name}"`)
  return definition
}

const ajv = new Ajv2020({ strict: false, allErrors: true })
formats.default(ajv, ['uuid', 'date-time'])
const validators = new Map<string, ValidateFunction>()

/** @throws Error if `result` does not match the declaration of `operation` */
export function checkOutput({ name, output }: RegisteredOperation, result: unknown): void {
  if (output === undefined) {
    if (result !== undefined) throw new Error(`${name} declares no result, but it returns one`)
    return
  }
  const components = { schemas: describeComponents([output]) }
  const validate = validators.get(name) ?? ajv.compile({ components, ...toJsonSchema(output) })
  validators.set(name, validate)
  if (!validate(JSON.parse(JSON.stringify(result))))
    throw new Error(`${name} breaks its output: ${ajv.errorsText(validate.errors)}`)
}
