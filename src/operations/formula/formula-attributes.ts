/** The attributes of formulas, as they are given and as they are answered. */
import { VALUE_TYPES } from '../../domain/contract.js'
import {
  FORMULA_TYPES,
  type FormulaBody,
  MAX_CODE_BYTES,
  MAX_DESCRIPTION_LENGTH,
  MAX_ELEMENTS,
  MAX_ICON_LENGTH,
  MAX_NAME_LENGTH,
} from '../../domain/formula.js'
import { arrayOf, component, enumOf, object, optionalAudit, text, uuid } from '../../framework/output.js'
import { type Infer, inputSchema } from '../../framework/schema.js'

export const formulaId = { type: 'string', description: 'The id of the formula.' } as const

/** Of formulas and reactors. */
export const nameFilter = {
  type: 'string',
  minLength: 1,
  maxLength: MAX_NAME_LENGTH,
  description: 'Part of the name; * is any text.',
} as const

const elementProperties = {
  name: { type: 'string', minLength: 1, maxLength: MAX_NAME_LENGTH },
  description: { type: 'string', maxLength: MAX_DESCRIPTION_LENGTH },
  type: { type: 'string', enum: VALUE_TYPES },
} as const

export const formulaBody = {
  name: { type: 'string', minLength: 1, maxLength: MAX_NAME_LENGTH, description: 'What people call it.' },
  description: { type: 'string', maxLength: MAX_DESCRIPTION_LENGTH, description: 'What it does.' },
  type: { type: 'string', enum: FORMULA_TYPES, description: 'private; official ones are made by the owner.' },
  icon: {
    type: 'string',
    maxLength: MAX_ICON_LENGTH,
    description: 'A data URL: PNG or JPEG in base64.',
  },
  code: {
    type: 'string',
    minLength: 1,
    maxLength: MAX_CODE_BYTES,
    description: 'CommonJS that exports an asynchronous function: @formula.js.',
  },
  configuration: {
    type: 'array',
    maxItems: MAX_ELEMENTS,
    description: 'What every reactor sets once, as JSON: name, type, description.',
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
    description: 'What every invocation is given, as JSON: name, type, optional, description.',
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

/** The attributes that a formula has, without whatever else was sent. */
export function readFormulaBody(input: Infer<typeof formulaInput>): FormulaBody {
  const { name, description, type, icon, code, configuration = [], request_parameters = [] } = input
  return {
    name,
    ...(description === undefined ? {} : { description }),
    type,
    ...(icon === undefined ? {} : { icon }),
    code,
    configuration: configuration.map(readElement),
    request_parameters: request_parameters.map((element) => ({
      ...readElement(element),
      optional: element.optional ?? false,
    })),
  }
}

function readElement({ name, description, type }: FormulaBody['configuration'][number]) {
  return { name, ...(description === undefined ? {} : { description }), type }
}
