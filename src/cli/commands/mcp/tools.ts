import type { Permission } from '../../../domain/access/permissions.js'
import { isObject } from '../../../domain/json/json.js'
import type { RegisteredOperation } from '../../../framework/registry.js'
import { type Schema, toJsonSchema } from '../../../framework/schema.js'
import type { ApplicationView } from '../../../operations/application/application-record.js'
import { findPresentation } from '../../nouns/all.js'

export interface Wanted {
  application: ApplicationView
  /** The nouns whose operations become tools. The default is all nouns. */
  nouns?: readonly string[] | undefined
  isReadOnly: boolean
  isNoReveal: boolean
  isRemote: boolean
}

export function isOffered(definition: RegisteredOperation, wanted: Wanted): boolean {
  const { access, kind, endpoint, noun, plaintext, cli, output } = definition
  const { application, nouns, isReadOnly, isNoReveal, isRemote } = wanted
  const { permissions = [], rules = [], type } = application
  const held = new Set([...permissions, ...rules.flatMap((rule) => rule.permissions)])
  const holds = (permission: Permission) => held.has(permission)
  const isHeld = access.permissions[access.isAnyEnough ? 'some' : 'every'](holds)
  const isHere = endpoint !== undefined || kind === 'relay' || !isRemote
  const isOwners = access.owner !== undefined || cli?.isInternal === true
  const hidesAll = isNoReveal && plaintext === 'refused'
  const isFile = output !== undefined && 'content' in output
  if (!isHeld || !isHere || isOwners || hidesAll || isFile || findPresentation(definition).arguments)
    return false
  return (
    (access.keyOf === undefined || access.keyOf === type) &&
    (nouns === undefined || nouns.includes(noun)) &&
    (!isReadOnly || isRead(definition))
  )
}

export function toolName({ name }: RegisteredOperation): string {
  return name.replaceAll(' ', '_')
}

export function describeTool(definition: RegisteredOperation) {
  const { summary, details, input, endpoint, cli, log, name, kind } = definition
  const isReading = isRead(definition)
  const outputSchema = describeOutput(definition)
  return {
    name: toolName(definition),
    title: name,
    description: [summary, details].filter(Boolean).join('\n'),
    inputSchema: toJsonSchema(inPlace(input) as Schema) as { type: 'object' },
    ...(outputSchema && { outputSchema }),
    annotations: {
      readOnlyHint: isReading,
      destructiveHint: cli?.confirmation !== undefined || ['update', 'delete'].includes(log?.operation ?? ''),
      idempotentHint: isReading || ['PUT', 'PATCH', 'DELETE'].includes(endpoint?.method ?? ''),
      openWorldHint: kind === 'relay' || log?.operation === 'react',
    },
  }
}

function isRead({ endpoint, log, access }: RegisteredOperation): boolean {
  if (endpoint === undefined) return access.permissions.every((permission) => permission.endsWith(':read'))
  return endpoint.method === 'GET' || log?.operation === 'read'
}

/**
 * No property is required, because no-reveal mode omits some properties, and reactor code may answer with any value.
 */
function describeOutput({ output, http }: RegisteredOperation) {
  if (output === undefined) return undefined
  const schema = toJsonSchema(inPlace(output, 'required') as Schema)
  const properties = output.type !== 'object' ? { result: schema } : (schema.properties as object)
  return {
    type: 'object' as const,
    properties: { ...properties, ...(http?.mayAnswer === 'anything' && { res: {} }) },
  }
}

/**
 * Copies a schema without the names of components, so that the schemas of components are written in place. Also leaves
 * out properties with the name `dropped` whose value is a list.
 */
function inPlace(value: unknown, dropped?: string): unknown {
  if (Array.isArray(value)) return value.map((item) => inPlace(item, dropped))
  if (!isObject(value)) return value
  const isKept = ([key, inner]: [string, unknown]) =>
    !(key === 'component' && typeof inner === 'string') && !(key === dropped && Array.isArray(inner))
  const entries = Object.entries(value).filter(isKept)
  return Object.fromEntries(entries.map(([key, inner]) => [key, inPlace(inner, dropped)]))
}
