/** Which fields the answer of an operation may have, so that a name that is none is refused before anything is done. */
import { CofferError } from '../errors.js'
import { COMPONENTS, type JsonSchema, resultOf } from '../http/shapes.js'
import { describeUnknown } from './output/fields.js'

/** @throws CofferError `usage` for a field that no answer of `route` has, naming those that there are */
export function requireFields(route: string, fields: readonly string[]): void {
  const result = resolve(resultOf(route) ?? {})
  const { data, pagination } = propertiesOf(result) ?? {}
  const item = data !== undefined && pagination !== undefined ? resolve(data) : result
  for (const field of fields) {
    let schema = item
    for (const [at, name] of field.split('.').entries()) {
      // Below what may be any JSON, or has names of its own, every name may be.
      if (typeof schema.additionalProperties === 'object' || (schema.type ?? schema.enum) === undefined) break
      const properties = propertiesOf(schema) ?? {}
      if (!Object.hasOwn(properties, name))
        throw new CofferError('usage', describeUnknown(field, at, Object.keys(properties)))
      schema = resolve(properties[name]!)
    }
  }
}

function propertiesOf({ properties }: JsonSchema): Record<string, JsonSchema> | undefined {
  return properties as Record<string, JsonSchema> | undefined
}

/** What a reference names, and what a list has members of. */
function resolve(schema: JsonSchema): JsonSchema {
  const { $ref, items } = schema as { $ref?: string; items?: JsonSchema }
  if ($ref !== undefined) return resolve(COMPONENTS[$ref.split('/').at(-1)!]!)
  return items === undefined ? schema : resolve(items)
}
