/**
 * Questions for what the input of an operation lacks, each as its schema has it: a list, checkboxes, fields one by one,
 * or text. An answer is checked at once; one that the operation refuses is asked for again, and the others stay.
 */
import { CofferError, type PropertyErrors } from '../../errors.js'
import type { CheckTools, OperationInput } from '../../framework/operation.js'
import { checkInput } from '../../framework/perform.js'
import type { RegisteredOperation } from '../../framework/registry.js'
import { memberOf, type ObjectSchema, type Schema } from '../../framework/schema.js'
import { validateInput } from '../../framework/validate.js'
import type { CommandContext } from '../context/context.js'
import { printWarning } from '../output/output.js'
import { editText, hasEditor } from './editor.js'
import { readAnswer } from './input.js'
import { identify, type ListNoun } from './names.js'
import { type Flag, isTextOf, listFlags, readFlag, takesBody, toFlag } from './options.js'
import { ask, checkbox, confirm, search, select } from './prompt.js'

export interface Form {
  /** The input with what was missing. */
  complete(input: OperationInput, missing: readonly Flag[]): Promise<OperationInput>
  /** The value of a positional argument, as text. */
  askWord(name: string, description: string): Promise<string>
  /** The input with other answers, where `error` is about answers; undefined where it is not. */
  correct(input: OperationInput, error: unknown): Promise<OperationInput | undefined>
}

type FormContext = Pick<CommandContext, 'terminal' | 'input' | 'env' | 'signal'>

const EDIT = ':edit'
/** Longer text than a line. */
const LONG_CHARACTERS = 10_000
const REQUIRED = 'A value is required.'
const NO_ANSWER = '(none)'
/** Refusals by what is stored, after which another answer may do. */
const OF_STORED_DATA = ['conflict', 'forbidden', 'not_found', 'too_large', 'unprocessable']

/** @throws CofferError `interrupted` from each of its functions */
export function createForm(
  context: FormContext,
  definition: RegisteredOperation,
  { list, tools }: { list: ListNoun; tools: CheckTools },
): Form {
  const { terminal, input: reader } = context
  const properties: Readonly<Record<string, Schema>> = definition.input.properties ?? {}
  /** What was asked, by the path of its answer: `data.number`. */
  const asked = new Map<string, { flag: Flag; isOptional: boolean }>()

  /** What is refused of `input`, by the schema and what does not depend on stored data. */
  const findErrors = async (input: OperationInput): Promise<PropertyErrors> => {
    try {
      await checkInput({ ...tools, validate: validateInput }, tools.now, definition, input)
      return {}
    } catch (error) {
      if (!(error instanceof CofferError)) throw error
      return error.errors ?? {}
    }
  }
  /** Why the answer at `path` is refused. */
  const complain = async (path: string, input: OperationInput): Promise<string | undefined> =>
    Object.entries(await findErrors(input)).find(([at]) => isBelow(at, path))?.[1][0]

  /** Without those that are refused whatever else is answered, such as permissions that the type may not hold. */
  const keepPossible = async (path: string, choices: readonly string[], input: OperationInput) => {
    const verdicts = await Promise.all(choices.map((each) => complain(path, placeAt(input, path, [each]))))
    const possible = choices.filter((_, at) => verdicts[at] === undefined)
    return possible.length === 0 ? choices : possible
  }

  async function askText(flag: Flag, take: (value: unknown) => Promise<true | string>, hint: string) {
    const { property, name, schema, shape } = flag
    const isEditable = isLong(schema) && hasEditor(context)
    const read = async (text: string) => {
      const texts = shape === 'list' ? text.split(',').map((item) => item.trim()) : [text]
      return take(text === '' ? undefined : readFlag(flag, texts))
    }
    const question = {
      message: property + (HINTS[shape] ?? '') + hint + (isEditable ? `, ${EDIT} for your editor` : ''),
      missing: name,
      sensitive: schema.sensitive === true,
      validate: async (answer: string) => {
        if (isEditable && answer === EDIT) return true
        return readAnswer(reader, answer, name).then(read).catch(explain)
      },
    }
    while ((await ask(terminal, question)) === EDIT && isEditable) {
      const verdict = await read(await editText(context, shape === 'json' ? 'json' : 'js')).catch(explain)
      if (verdict === true) return
      await printWarning(terminal, verdict)
    }
  }

  /** The names, or without one the ids, of the things of a noun. */
  const listNames = async (noun: string) =>
    (await list(noun).catch(() => [])).map(identify).map(({ id, names: [name] }) => ({
      value: id,
      name: name ?? id,
      description: id,
    }))

  async function askOne(given: Flag, input: OperationInput, isOptional = false): Promise<OperationInput> {
    const flag = { ...given, isText: isTextOf(given, input) }
    const { property: path, name: missing, schema } = flag
    const members = membersOf(schema, input)
    if (members !== undefined) {
      let now = placeAt(input, path, {})
      for (const [name, each] of Object.entries(members)) {
        const member = { ...toFlag(`${path}.${name}`, each), name: missing }
        now = await askOne(member, now, (await complain(member.property, now)) === undefined)
      }
      return now
    }
    const item = memberOf(schema)
    if (schema.type === 'array' && item.type === 'object' && item.properties !== undefined)
      return askItems(flag, item, input)
    asked.set(path, { flag: given, isOptional })
    const hint = isOptional ? ' (optional)' : ''
    const message = path + hint
    const choices = ('enum' in item ? item.enum : undefined) ?? (item.meanings && Object.keys(item.meanings))
    let now = input
    const take = async (value: unknown): Promise<true | string> => {
      now = placeAt(input, path, value)
      if (value === undefined) return isOptional || REQUIRED
      // A name is not an id yet.
      return schema.refersTo === undefined ? ((await complain(path, now)) ?? true) : true
    }
    if (choices !== undefined && schema.type === 'array') {
      const possible = await keepPossible(path, choices, input)
      const described = possible.map((value) => ({ value, name: nameChoice(value, item) }))
      await checkbox(terminal, { message, missing, choices: described, validate: take })
      return now
    }
    if (choices !== undefined)
      return placeAt(input, path, await select(terminal, { message, missing, choices }))
    const offered =
      schema.refersTo === undefined
        ? (item.suggestions ?? []).map((value) => ({ value, name: value }))
        : await listNames(schema.refersTo)
    if (offered.length === 0) await askText(flag, take, hint)
    else {
      const read = (text: string) => (text === '' ? undefined : readFlag(flag, [text]))
      const shown = isOptional ? [{ value: '', name: '(default)' }, ...offered] : offered
      const freely = schema.refersTo === undefined ? `${message}, choose or type` : message
      await search(terminal, {
        message: freely,
        missing,
        choices: shown,
        validate: (text) => take(read(text)),
      })
    }
    return now
  }

  /** Objects in a list: the members of one after another. */
  async function askItems({ property, name }: Flag, item: ObjectSchema, input: OperationInput) {
    const askMember = (path: string, member: string, now: OperationInput) =>
      askOne({ ...toFlag(`${path}.${member}`, item.properties![member]!), name }, now)
    let now = placeAt(input, property, undefined)
    for (let at = 0, isMore = true; isMore; at++) {
      const path = `${property}[${at}]`
      for (const member of item.required ?? []) now = await askMember(path, member, now)
      const member = await chooseOneOf(item, path, now)
      if (member !== undefined) now = await askMember(path, member, now)
      isMore = await confirm(terminal, { message: `${property}: another one?`, missing: name })
    }
    return now
  }

  /** Which of the properties is to be asked for, of which at least one is needed. */
  async function chooseOneOf(item: ObjectSchema, path: string, input: OperationInput) {
    const { needsOneOf = [] } = item
    const isGiven = needsOneOf.some((property) => valueAt(input, path)[property] !== undefined)
    if (needsOneOf.length === 0 || isGiven) return undefined
    const prefix = path === '' ? '' : `${path}.`
    const verdicts = await Promise.all(
      needsOneOf.map(async (property) => {
        const at = prefix + property
        // A list of which nothing would be accepted, such as rules for what may have none.
        if (item.properties?.[property]?.type !== 'array') return false
        return Object.hasOwn(await findErrors(placeAt(input, at, [{}])), at)
      }),
    )
    const possible = needsOneOf.filter((_, at) => !verdicts[at])
    if (possible.length <= 1) return possible[0] ?? needsOneOf[0]!
    const message = prefix + needsOneOf.join(' or ')
    return select(terminal, { message, missing: needsOneOf[0]!, choices: possible })
  }

  /** Which answer a refusal that names none is about, if any. */
  const askWhich = async (message: string) => {
    const open = [...asked].filter(([path]) => Object.hasOwn(properties, path.split(/[.[]/)[0]!))
    if (open.length === 0) return []
    const choices = [...open.map(([path]) => path), NO_ANSWER]
    const question = { message: `${message} Which answer do you change?`, missing: '', choices }
    const chosen = await select(terminal, question)
    return open.filter(([path]) => path === chosen)
  }

  return {
    async complete(input, missing) {
      const flags = listFlags(definition)
      const isEmpty = Object.keys(input).length === 0 && takesBody(definition)
      let now = input
      for (const flag of missing) now = await askOne(flag, now)
      const chosen = await chooseOneOf(definition.input as ObjectSchema, '', now)
      if (chosen !== undefined) now = await askOne(flags.find(({ property }) => property === chosen)!, now)
      // Who gave something knows what else there is to give.
      if (isEmpty && missing.length > 0)
        for (const flag of flags.filter(({ schema }) => memberOf(schema).suggestions !== undefined))
          if (now[flag.property] === undefined) now = await askOne(flag, now, true)
      return now
    },

    async askWord(name, description) {
      const schema: Schema = properties[name] ?? { type: 'string', description }
      const answered = await askOne({ ...toFlag(name, schema), name: `<${name}>` }, {})
      return String(answered[name])
    },

    async correct(input, error) {
      if (!(error instanceof CofferError)) return undefined
      const { code, message, errors } = error
      const unknown = code === 'not_found' ? (definition.endpoint?.parameters ?? []) : []
      const refused = errors === undefined ? unknown : Object.keys(errors)
      const named = [...asked].filter(([path]) =>
        refused.some((at) => isBelow(at, path) || isBelow(path, at)),
      )
      const isOfStored = errors === undefined && OF_STORED_DATA.includes(code)
      const again = named.length === 0 && isOfStored ? await askWhich(message) : named
      if (again.length === 0) return undefined
      if (again === named) await printWarning(terminal, message)
      let now = input
      for (const [, { flag, isOptional }] of again) now = await askOne(flag, now, isOptional)
      return now
    },
  }
}

function isBelow(path: string, above: string): boolean {
  return path === above || path.startsWith(`${above}.`) || path.startsWith(`${above}[`)
}

function isLong({ type, ...schema }: Schema): boolean {
  if (type === undefined || type === 'object') return true
  return type === 'string' && 'maxLength' in schema && (schema.maxLength ?? 0) > LONG_CHARACTERS
}

/** The members of a value that is asked for one by one, where another property says so. */
function membersOf({ membersWhere }: Schema, input: OperationInput) {
  return membersWhere?.values[String(input[membersWhere.property])]
}

function nameChoice(value: string, { meanings }: Schema): string {
  const meaning = meanings?.[value]
  return meaning === undefined ? value : `${value}  ${meaning}`
}

/** The names in a path such as `rules[0].priority`. */
const namesIn = (path: string) => path.split(/[.[\]]+/).filter((name) => name !== '')

/** The object at `path`; an empty one where there is none. */
function valueAt(input: OperationInput, path: string): OperationInput {
  return namesIn(path).reduce((inner, name) => (inner[name] ?? {}) as OperationInput, input)
}

/** `input` with another value at `path`; undefined removes it. */
function placeAt(input: OperationInput, path: string, value: unknown): OperationInput {
  const place = (target: unknown, [name, ...below]: string[]): unknown => {
    if (name === undefined) return value
    if (/^\d+$/.test(name)) {
      const items = [...((target as unknown[] | undefined) ?? [])]
      items[Number(name)] = place(items[Number(name)], below)
      return items
    }
    const { [name]: inner, ...others } = (target ?? {}) as OperationInput
    const placed = place(inner, below)
    return placed === undefined ? others : { ...others, [name]: placed }
  }
  return place(input, namesIn(path)) as OperationInput
}

const HINTS: Readonly<Record<string, string>> = {
  json: ' (text, JSON that starts with { [ or ", or @file)',
  list: ', separated by commas',
  map: ' (key=value, or JSON)',
}

/** The error message of an answer, after which the prompt is repeated. */
function explain(error: unknown): string {
  if (error instanceof CofferError) return error.message
  throw error
}
