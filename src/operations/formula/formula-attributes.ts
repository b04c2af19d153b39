/** Input and output attributes of formulas. */
import { VALUE_TYPES } from '../../domain/contract.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import {
  FORMULA_TYPES,
  type FormulaBody,
  MAX_CODE_BYTES,
  MAX_DESCRIPTION_LENGTH,
  MAX_ELEMENTS,
  MAX_ICON_LENGTH,
  MAX_NAME_LENGTH,
} from '../../domain/reactor/formula.js'
import { arrayOf, component, enumOf, object, optionalAudit, text, uuid } from '../../framework/output.js'
import { type Infer, idOf, inputSchema } from '../../framework/schema.js'

export const formulaId = idOf('formula', 'The id of the formula, or its name.')

export const nameFilter = {
  type: 'string',
  minLength: 1,
  maxLength: MAX_NAME_LENGTH,
  description: 'A part of the name; * matches any text.',
} as const

const elementProperties = {
  name: { type: 'string', minLength: 1, maxLength: MAX_NAME_LENGTH },
  description: { type: 'string', maxLength: MAX_DESCRIPTION_LENGTH },
  type: { type: 'string', enum: VALUE_TYPES },
} as const

export const formulaBody = {
  name: { type: 'string', minLength: 1, maxLength: MAX_NAME_LENGTH, description: 'A display name.' },
  description: { type: 'string', maxLength: MAX_DESCRIPTION_LENGTH, description: 'What it does.' },
  type: {
    type: 'string',
    enum: FORMULA_TYPES,
    description: 'private; only the owner of the vault creates official ones.',
  },
  icon: { type: 'string', maxLength: MAX_ICON_LENGTH, description: 'A data URL of a PNG or JPEG in base64.' },
  code: {
    type: 'string',
    minLength: 1,
    maxLength: MAX_CODE_BYTES,
    description: 'A CommonJS module that exports an asynchronous function: @formula.js.',
  },
  configuration: {
    type: 'array',
    maxItems: MAX_ELEMENTS,
    description: 'A parameter that each reactor sets, as JSON: name, type, description.',
    items: {
      type: 'object',
      properties: elementProperties,
      required: ['name', 'type'],
      additionalProperties: true,
    },
  },
  request_parameters: {
    type: 'array',
    maxItems: MAX_ELEMENTS,
    flag: 'request-parameter',
    description: 'A parameter of each invocation, as JSON: name, type, optional, description.',
    items: {
      type: 'object',
      properties: { ...elementProperties, optional: { type: 'boolean' } },
      required: ['name', 'type'],
      additionalProperties: true,
    },
  },
} as const

export const formulaInput = inputSchema(['name', 'type', 'code'], formulaBody)

const element = { name: text, 'description?': text, type: { enum: VALUE_TYPES } } as const

export const formulaOutput = component('Formula', ['id', 'name', 'type', 'status', 'created_at'], {
  id: uuid,
  name: text,
  'description?': text,
  type: { enum: FORMULA_TYPES },
  status: enumOf('verified', 'coming_soon'),
  'icon?': text,
  code: text,
  configuration: arrayOf(object(element)),
  request_parameters: arrayOf(object({ ...element, 'optional?': { type: 'boolean' } })),
  ...optionalAudit,
})

/** The attributes of a formula, without other properties of the input. */
export function readFormulaBody(input: Infer<typeof formulaInput>): FormulaBody {
  const { name, description, type, icon, code, configuration = [], request_parameters = [] } = input
  return {
    name,
    ...omitUndefined({ description }),
    type,
    ...omitUndefined({ icon }),
    code,
    configuration: configuration.map(readElement),
    request_parameters: request_parameters.map((element) => ({
      ...readElement(element),
      optional: element.optional ?? false,
    })),
  }
}

function readElement({ name, description, type }: FormulaBody['configuration'][number]) {
  return { name, ...omitUndefined({ description }), type }
}
