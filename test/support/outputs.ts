/** Holds what operations answer with against the outputs that they declare, over HTTP or not. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import type { RegisteredOperation } from '../../src/framework/registry.js'
import { toJsonSchema } from '../../src/framework/schema.js'
import { describeComponents } from '../../src/http/openapi/openapi.js'

const ajv = new Ajv2020({ strict: false, allErrors: true })
formats.default(ajv, ['uuid', 'date-time'])
const validators = new Map<string, ValidateFunction>()

/** @throws Error when `result` is not what `operation` declares */
export function checkOutput({ name, output }: RegisteredOperation, result: unknown): void {
  if (output === undefined) {
    if (result !== undefined) throw new Error(`${name} answers with something that it does not declare`)
    return
  }
  const components = { schemas: describeComponents([output]) }
  const validate = validators.get(name) ?? ajv.compile({ components, ...toJsonSchema(output) })
  validators.set(name, validate)
  if (!validate(JSON.parse(JSON.stringify(result))))
    throw new Error(`${name} breaks its output: ${ajv.errorsText(validate.errors)}`)
}
