/**
 * Fields for the input of an operation, derived from its schema in the OpenAPI document. A screen adds only hints that
 * the schema cannot contain.
 */
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { OperationName } from '../operations/all.js'
import { Check, type Choices, Choose, Field, TextArea, useNotes, wordsOf } from './forms.js'
import { useOperation } from './reference.js'
import { describeName, type FormKind, formKindOf, readField, type Schema, textOf } from './schema-text.js'

export interface Hint {
  label?: string
  help?: ComponentChildren
  choices?: Choices
  /** This page does not have the stored value. The value stays unless a person asks to replace it. */
  isKept?: boolean
  /** The value is a text, even if it looks like JSON. */
  isText?: boolean
  rows?: number
  placeholder?: string
  /** If this key changes, the field is drawn again with its initial value. */
  key?: string
  change?(value: string): void
}

interface SchemaFields {
  operation: OperationName
  /** Default: all properties. */
  names?: readonly string[]
  of?: object
  hints?: Readonly<Record<string, Hint>>
}

interface PropertyField {
  name: string
  schema: Schema
  kind: FormKind
  value: unknown
  hint: Hint
  isRequired: boolean
}

function listFields(
  schema: Schema,
  { names, of = {}, hints = {} }: Omit<SchemaFields, 'operation'>,
): PropertyField[] {
  const { properties = {}, required = [] } = schema
  return (names ?? Object.keys(properties)).flatMap((name) => {
    const property = properties[name]
    if (property === undefined) return []
    const hint = hints[name] ?? {}
    const value = (of as Record<string, unknown>)[name] ?? property.default
    const kind = formKindOf(name, property, hint.choices !== undefined)
    return [{ name, schema: property, kind, value, hint, isRequired: required.includes(name) }]
  })
}

/**
 * `draw` draws the fields, and `read` reads the input of the operation from the form. `isPatch`: the input has only the
 * changed properties, with null for emptied properties.
 */
export function useSchemaFields(given: SchemaFields & { isPatch?: boolean }) {
  const { schema } = useOperation(given.operation) ?? {}
  const fields = schema === undefined ? [] : listFields(schema, given)
  const read = (data: FormData): Record<string, unknown> =>
    Object.fromEntries(
      fields.flatMap((field) => {
        const { name, kind, value, schema, hint } = field
        const asked = {
          name,
          kind,
          value,
          schema,
          isText: hint.isText ?? false,
          isPatch: given.isPatch ?? false,
        }
        const found = readField(data, asked)
        return found === undefined ? [] : [[name, found.value]]
      }),
    )
  const draw = (...names: string[]) =>
    fields
      .filter(({ name }) => names.length === 0 || names.includes(name))
      .map((field) => <PropertyControl key={`${field.name} ${field.hint.key ?? ''}`} {...field} />)
  return { read, draw }
}

/** Leaves out the list of choices, because the field shows the choices. */
const explain = ({ enum: choices, description }: Schema) =>
  choices === undefined ? description : description?.replace(/^[^.]*\bone of [^.]*\.\s*/i, '')

function PropertyControl(field: PropertyField) {
  const { name, hint, schema } = field
  const label = hint.label ?? describeName(name)
  const [isReplaced, setReplaced] = useState(false)
  if (!hint.isKept) return <Control {...field} label={label} help={hint.help ?? explain(schema)} />
  return (
    <div class="stack">
      <Check label={`Replace: ${label.toLowerCase()}`} isOn={isReplaced} turn={setReplaced} />
      {isReplaced ? (
        <Control {...field} label={label} help={hint.help ?? explain(schema)} />
      ) : (
        <p class="about">The stored value stays. This page does not show it.</p>
      )}
    </div>
  )
}

type ControlProps = PropertyField & { label: string; help: ComponentChildren }

const YES_NO = { '': 'not set (no)', true: 'yes', false: 'no' }

function Control({ name, schema, kind, value, hint, isRequired, label, help }: ControlProps) {
  const { choices = schema.enum as string[] | undefined, placeholder, rows, change } = hint
  const text = textOf(kind, value)
  const more = { name, label, help, ...(placeholder && { placeholder }) }
  if (kind === 'group') return <Group {...{ name, schema, value, label, help }} />
  if (kind === 'choices') return <Many {...{ name, label, help, value, of: choices ?? [] }} />
  if (kind === 'choice' || kind === 'reference') {
    const isTrueFalse = choices?.[0 as never] === 'true'
    const words = isTrueFalse ? YES_NO : wordsOf(choices ?? {})
    const all = isRequired || isTrueFalse || schema.default !== undefined ? words : { '': 'none', ...words }
    return <Choose {...more} isShown of={all} value={text} {...(change && { choose: change })} />
  }
  if (kind === 'flag') return <Flag {...{ name, label, help, isOn: value === true }} />
  if (['lines', 'pairs', 'json'].includes(kind))
    return <TextArea {...more} rows={rows ?? (kind === 'json' ? 4 : 3)} text={text} />
  const input = { ...more, defaultValue: text, required: isRequired, grows: true }
  if (kind === 'date') return <Field {...input} type="datetime-local" step={1} />
  return kind === 'number' ? <Field {...input} type="number" /> : <Field {...input} type="text" />
}

interface PartProps {
  name: string
  label: string
  help: ComponentChildren
}

function Flag({ name, label, help, isOn }: PartProps & { isOn: boolean }) {
  const { control, notes } = useNotes(name, help)
  return (
    <div class="field">
      <label>
        <input type="checkbox" name={name} defaultChecked={isOn} {...control} />
        {label}
      </label>
      {notes}
    </div>
  )
}

function Group({ name, schema, value, label, help }: PartProps & { schema: Schema; value: unknown }) {
  const { control, notes } = useNotes(name, help)
  const { 'aria-describedby': describedBy } = control
  const members = listFields(schema, { of: (value ?? {}) as object })
  return (
    <fieldset class="field group" aria-describedby={describedBy}>
      <legend>{label}</legend>
      <div class="form">
        {members.map((member) => (
          <Control
            {...member}
            key={member.name}
            name={`${name}.${member.name}`}
            label={describeName(member.name)}
            help={member.schema.description}
          />
        ))}
      </div>
      {notes}
    </fieldset>
  )
}

/** The current values stay choices, even if the schema no longer contains them. */
function Many({ name, label, help, value, of }: PartProps & { value: unknown; of: Choices }) {
  const { control, notes } = useNotes(name, help)
  const { 'aria-describedby': describedBy, ...invalid } = control
  const current = (value ?? []) as string[]
  const words = { ...Object.fromEntries(current.map((each) => [each, each])), ...wordsOf(of) }
  // Sorts by the initial values, because boxes that move at a click are hard to follow.
  const first = ([name]: [string, string]) => (current.includes(name) ? 0 : 1)
  const [count, setCount] = useState(current.length)
  const countChosen = (event: { currentTarget: HTMLElement }) =>
    setCount(event.currentTarget.querySelectorAll(':checked').length)
  return (
    <fieldset class="field group" aria-describedby={describedBy}>
      <legend>
        {label}: {count} of {Object.keys(words).length} chosen
      </legend>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard. */}
      <div class="choices" tabIndex={0} onChange={countChosen}>
        {Object.entries(words)
          .sort((a, b) => first(a) - first(b) || a[0].localeCompare(b[0]))
          .map(([each, text]) => (
            <label key={each}>
              <input
                type="checkbox"
                name={name}
                value={each}
                defaultChecked={current.includes(each)}
                {...invalid}
              />
              {text}
            </label>
          ))}
      </div>
      {notes}
    </fieldset>
  )
}
