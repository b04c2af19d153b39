/**
 * Asks for what the input of an operation lacks, by its schema: a choice, checkboxes, fields one by one, or text. Each
 * answer is checked at once. An answer that the operation refuses is asked for again, and the other answers stay.
 */
import { CofferError, type PropertyErrors } from '../../errors.js'
import type { CheckTools, OperationInput } from '../../framework/operation.js'
import { checkInput } from '../../framework/perform.js'
import type { RegisteredOperation } from '../../framework/registry.js'
import { memberOf, type ObjectSchema, type Schema } from '../../framework/schema.js'
import { validateInput } from '../../framework/validate.js'
import type { CommandContext } from '../context.js'
import { printWarning } from '../output/output.js'
import { editText, hasEditor } from './editor.js'
import { readAnswer } from './input.js'
import { identify, type ListNoun } from './names.js'
import { type Flag, isTextOf, listFlags, readFlag, takesBody, toFlag } from './options.js'
import { ask, type Choice, checkbox, search, select } from './prompt.js'

export type FormIo = Pick<CommandContext, 'terminal' | 'input' | 'env' | 'signal'> & {
  list: ListNoun
  tools: CheckTools
}

const EDIT = ':edit'
/** Longer text is not written on a line. */
const LONG_CHARACTERS = 10_000
const HINTS: Readonly<Record<string, string>> = {
  json: ' (text, JSON that starts with { [ or ", or @file)',
  list: ', separated by commas',
  map: ' (key=value, or JSON)',
}

/** Takes the value of an answer; resolves to true, or to why it is refused. */
type Take = (value: unknown) => Promise<true | string>

/** Its functions throw CofferError `interrupted` if the person leaves a question. */
export class Form {
  readonly #io: FormIo
  readonly #definition: RegisteredOperation
  readonly #properties: Readonly<Record<string, Schema>>
  /** Flags that were asked for, by the path of the answer: `data.number`. */
  readonly #asked = new Map<string, { flag: Flag; isOptional: boolean }>()

  constructor(io: FormIo, definition: RegisteredOperation) {
    this.#io = io
    this.#definition = definition
    this.#properties = definition.input.properties ?? {}
  }

  /** The input with what was missing. */
  async complete(input: OperationInput, missing: readonly Flag[]): Promise<OperationInput> {
    const definition = this.#definition
    const flags = listFlags(definition)
    const isEmpty = Object.keys(input).length === 0 && takesBody(definition)
    let now = input
    for (const flag of missing) now = await this.#ask(flag, now)
    const chosen = await this.#chooseOneOf(definition.input as ObjectSchema, now)
    if (chosen !== undefined) now = await this.#ask(flags.find(({ property }) => property === chosen)!, now)
    // A person who gave something knows what else there is to give.
    if (!isEmpty || missing.length === 0) return now
    for (const flag of flags.filter(({ schema }) => memberOf(schema).suggestions !== undefined))
      if (now[flag.property] === undefined) now = await this.#ask(flag, now, true)
    return now
  }

  /** The value of a positional argument, as text. */
  async askArg(name: string, description: string): Promise<string> {
    const schema: Schema = this.#properties[name] ?? { type: 'string', description }
    const answered = await this.#ask({ ...toFlag(name, schema), name: `<${name}>` }, {})
    return String(answered[name])
  }

  /** The input with other answers, if `error` is about answers; else undefined. */
  async correct(input: OperationInput, error: unknown): Promise<OperationInput | undefined> {
    if (!(error instanceof CofferError)) return undefined
    const { code, message, errors } = error
    const unknown = code === 'not_found' ? (this.#definition.endpoint?.parameters ?? []) : []
    const refused = errors === undefined ? unknown : Object.keys(errors)
    const isRefused = (path: string) => refused.some((at) => isBelow(at, path) || isBelow(path, at))
    const again = [...this.#asked].filter(([path]) => isRefused(path))
    if (again.length === 0) return undefined
    await printWarning(this.#io.terminal, message)
    let now = input
    for (const [, { flag, isOptional }] of again) now = await this.#ask(flag, now, isOptional)
    return now
  }

  async #ask(flag: Flag, input: OperationInput, isOptional = false): Promise<OperationInput> {
    const { property: path, name: missing, schema } = flag
    const members = schema.membersWhere?.values[String(input[schema.membersWhere.property])]
    if (members !== undefined) return this.#askMembers(flag, members, input)
    this.#asked.set(path, { flag, isOptional })
    const item = memberOf(schema)
    const message = path + (isOptional ? ' (optional)' : '')
    const choices = ('enum' in item ? item.enum : undefined) ?? (item.meanings && Object.keys(item.meanings))
    if (choices !== undefined && schema.type !== 'array')
      return placeAt(input, path, await select(this.#io.terminal, { message, missing, choices }))
    let now = input
    const take: Take = async (value) => {
      now = placeAt(input, path, value)
      if (value === undefined) return isOptional || 'A value is required.'
      // A name is not an id yet.
      return schema.refersTo === undefined ? ((await this.#complain(path, now)) ?? true) : true
    }
    const offered = await this.#offer(schema)
    if (choices !== undefined) await this.#askSeveral(flag, choices, input, { message, take })
    else if (offered.length > 0)
      await search(this.#io.terminal, {
        message: schema.refersTo === undefined ? `${message}, choose or type` : message,
        missing,
        choices: isOptional ? [{ value: '', name: '(default)' }, ...offered] : offered,
        validate: (text) => take(text === '' ? undefined : readFlag(flag, [text])),
      })
    else await this.#askText({ ...flag, isText: isTextOf(flag, input) }, message, take)
    return now
  }

  /** Asks for the members of a value one by one. */
  async #askMembers(flag: Flag, members: Readonly<Record<string, Schema>>, input: OperationInput) {
    let now = placeAt(input, flag.property, {})
    for (const [name, schema] of Object.entries(members)) {
      const member = { ...toFlag(`${flag.property}.${name}`, schema), name: flag.name }
      now = await this.#ask(member, now, (await this.#complain(member.property, now)) === undefined)
    }
    return now
  }

  /** Offers what may be chosen at all: a permission, for example, that the type of application may hold. */
  async #askSeveral(
    { property: path, name: missing, schema }: Flag,
    choices: readonly string[],
    input: OperationInput,
    { message, take }: { message: string; take: Take },
  ): Promise<void> {
    const verdicts = await Promise.all(
      choices.map((each) => this.#complain(path, placeAt(input, path, [each]))),
    )
    const possible = choices.filter((_, at) => verdicts[at] === undefined)
    const { meanings = {} } = memberOf(schema)
    const described = (possible.length === 0 ? choices : possible).map((value) => ({
      value,
      name: meanings[value] === undefined ? value : `${value}  ${meanings[value]}`,
    }))
    await checkbox(this.#io.terminal, { message, missing, choices: described, validate: take })
  }

  /** Suggestions of the schema; names of what it refers to, or ids of what has no name. */
  async #offer(schema: Schema): Promise<Choice[]> {
    const { suggestions = [] } = memberOf(schema)
    if (schema.refersTo === undefined) return suggestions.map((value) => ({ value, name: value }))
    const all = (await this.#io.list(schema.refersTo).catch(() => [])).map(identify)
    return all.map(({ id, names: [name = id] }) => ({ value: id, name, description: id }))
  }

  /** Asks for a line, or for a text in the editor: code, or objects in a list. */
  async #askText(flag: Flag, message: string, take: Take): Promise<void> {
    const { name, schema } = flag
    const { terminal, input } = this.#io
    const items = schema.type === 'array' && schema.items.type === 'object' ? schema.items : undefined
    const shape = items === undefined ? flag.shape : 'json'
    const isEditable = (items !== undefined || isLong(schema)) && hasEditor(this.#io)
    const read = async (text: string): Promise<true | string> => {
      if (text === '') return take(undefined)
      const texts = shape === 'list' ? text.split(',').map((each) => each.trim()) : [text]
      const value = readFlag({ ...flag, shape }, texts)
      return take(items === undefined || Array.isArray(value) ? value : [value])
    }
    const question = {
      message: message + (HINTS[shape] ?? '') + (isEditable ? `, ${EDIT} for your editor` : ''),
      missing: name,
      sensitive: schema.sensitive === true,
      validate: async (answer: string) => {
        if (isEditable && answer === EDIT) return true
        return readAnswer(input, answer, name).then(read).catch(explain)
      },
    }
    let draft = items === undefined ? '' : `${JSON.stringify([templateOf(items)], undefined, 2)}\n`
    while ((await ask(terminal, question)) === EDIT && isEditable) {
      draft = await editText(this.#io, shape === 'json' ? 'json' : 'js', draft)
      const verdict = await read(draft).catch(explain)
      if (verdict === true) return
      await printWarning(terminal, verdict)
    }
  }

  /** The property to ask for, if at least one of several is needed. */
  async #chooseOneOf({ needsOneOf = [], properties }: ObjectSchema, input: OperationInput) {
    if (needsOneOf.length === 0 || needsOneOf.some((property) => input[property] !== undefined))
      return undefined
    // Leaves out a list of which nothing would be accepted, such as rules for a type that may have none.
    const isPossible = async (property: string) =>
      properties?.[property]?.type !== 'array' ||
      (await this.#complainExactly(property, { ...input, [property]: [{}] })) === undefined
    const verdicts = await Promise.all(needsOneOf.map(isPossible))
    const choices = needsOneOf.filter((_, at) => verdicts[at])
    if (choices.length <= 1) return choices[0] ?? needsOneOf[0]
    const message = needsOneOf.join(' or ')
    return select(this.#io.terminal, { message, missing: needsOneOf[0]!, choices })
  }

  /** Why the answer at `path` is refused, by the schema and by what does not depend on stored data. */
  async #complain(path: string, input: OperationInput): Promise<string | undefined> {
    const [at, messages] =
      Object.entries(await this.#findErrors(input)).find(([at]) => isBelow(at, path)) ?? []
    return at === undefined || at === path ? messages?.[0] : `${at}: ${messages![0]}`
  }

  async #complainExactly(path: string, input: OperationInput): Promise<string | undefined> {
    return (await this.#findErrors(input))[path]?.[0]
  }

  async #findErrors(input: OperationInput): Promise<PropertyErrors> {
    const { tools } = this.#io
    try {
      await checkInput({ ...tools, validate: validateInput }, tools.now, this.#definition, input)
      return {}
    } catch (error) {
      if (!(error instanceof CofferError)) throw error
      return error.errors ?? {}
    }
  }
}

function isBelow(path: string, above: string): boolean {
  return path === above || path.startsWith(`${above}.`) || path.startsWith(`${above}[`)
}

function isLong({ type, ...schema }: Schema): boolean {
  if (type === undefined || type === 'object') return true
  return type === 'string' && 'maxLength' in schema && (schema.maxLength ?? 0) > LONG_CHARACTERS
}

/** A value to begin with in the editor: an object has its required members. */
function templateOf(schema: Schema): unknown {
  if (schema.type === 'object') {
    const { properties = {}, required = [] } = schema as ObjectSchema
    return Object.fromEntries(required.map((name) => [name, templateOf(properties[name]!)]))
  }
  if ('enum' in schema && schema.enum !== undefined) return schema.enum[0]
  if (schema.type === 'array') return []
  return schema.type === 'integer' ? (schema.minimum ?? 0) : ''
}

/** `input` with another value at a path such as `data.number`; undefined removes it. */
function placeAt(input: OperationInput, path: string, value: unknown): OperationInput {
  const [name = '', ...below] = path.split('.')
  const { [name]: inner, ...others } = input
  const placed = below.length === 0 ? value : placeAt((inner ?? {}) as OperationInput, below.join('.'), value)
  return placed === undefined ? others : { ...others, [name]: placed }
}

/** The error message of an answer, after which the question is repeated. */
function explain(error: unknown): string {
  if (error instanceof CofferError) return error.message
  throw error
}
