/** Building blocks of output schemas. In an answer, an attribute without a value is absent instead of null. */
import type { Schema } from './schema.js'

export const text = { type: 'string' } as const
export const uuid = { type: 'string', format: 'uuid' } as const
export const boolean = { type: 'boolean' } as const
export const number = { type: 'number' } as const
export const count = { type: 'integer', minimum: 0 } as const
export const date = {
  type: 'string',
  format: 'date-time',
  description: 'UTC, with milliseconds and offset.',
  examples: ['2030-08-27T02:23:57.000+00:00'],
} as const
export const texts = { type: 'array', items: text } as const
export const textMap = { type: 'object', additionalProperties: text } as const

const modified = { 'modified_by?': uuid, 'modified_at?': date } as const
export const audit = { created_by: uuid, created_at: date, ...modified } as const
export const optionalAudit = { 'created_by?': uuid, 'created_at?': date, ...modified } as const

export function anyJson(description: string) {
  return { description }
}

export function enumOf<const C extends readonly string[]>(...choices: C) {
  return { enum: choices }
}

export function arrayOf<const S extends Schema>(items: S) {
  return { type: 'array', items } as const
}

type Bare<Name> = Name extends `${infer Rest}?` ? Rest : Name

export interface Closed<P> {
  type: 'object'
  properties: { [Name in keyof P as Bare<Name>]: P[Name] }
  required: readonly Exclude<keyof P, `${string}?`>[]
  additionalProperties: false
}

/** A closed object. Properties whose names end with `?` are optional. */
export function object<const P extends Readonly<Record<string, Schema>>>(properties: P): Closed<P> {
  const names = Object.keys(properties)
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name.replace('?', ''), properties[name]])),
    required: names.filter((name) => !name.endsWith('?')),
    additionalProperties: false,
  } as unknown as Closed<P>
}

/** A closed object that the OpenAPI document describes once, as a component with this name. */
export function component<const P extends Readonly<Record<string, Schema>>>(
  name: string,
  columns: readonly string[],
  properties: P,
) {
  return { component: name, ...object(properties), columns }
}
