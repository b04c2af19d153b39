import { randomBytes } from 'node:crypto'
import { Turns } from '../../domain/expression/budget.js'
import { refuseErrors } from '../../domain/property-errors.js'
import { CofferError, type PropertyErrors } from '../../errors.js'
import type { OperationInput } from '../../framework/context.js'
import type { CheckTools } from '../../framework/declaration.js'
import { checkInput } from '../../framework/perform.js'
import type { RegisteredOperation } from '../../framework/registry.js'
import { memberOf, type ObjectSchema, type Schema } from '../../framework/schema.js'
import { validateInput } from '../../framework/validate.js'
import type { CommandContext, Options } from '../context.js'
import { shortFormOf } from '../short-forms.js'
import { explainDurations } from './durations.js'
import { type Flag, isTextOf, listFlags, readFlag, toFlag } from './flags.js'
import { isSource } from './input.js'
import { identify, type ListNoun } from './names.js'
import { ask, type Choice } from './prompt.js'

interface FormIo extends Pick<CommandContext, 'terminal' | 'input' | 'clock'> {
  list: ListNoun
}

const HINTS: Readonly<Record<string, string>> = {
  json: ' (text, JSON that starts with { [ or ", or @file)',
  list: ', separated by commas',
  map: ' (key=value, or JSON)',
}

type Take = (value: unknown) => Promise<true | string>

/**
 * Prompts for missing properties, and validates each answer at once. Throws `interrupted` if the person cancels a
 * prompt.
 */
export class Form {
  readonly #io: FormIo
  readonly #definition: RegisteredOperation
  readonly #tools: CheckTools

  constructor(io: FormIo, definition: RegisteredOperation) {
    this.#io = io
    this.#tools = createCheckTools(io.clock)
    this.#definition = definition
  }

  /**
   * Refuses invalid flags before the first prompt. Values from files, names of records, and dates are validated later.
   * @throws CofferError `validation`
   */
  async checkFlags(options: Options): Promise<void> {
    let input: OperationInput = {}
    for (const flag of listFlags(this.#definition)) {
      const { key, property, schema } = flag
      const given = options[key] as boolean | readonly string[] | undefined
      const isLater = schema.refersTo ?? schema.duration ?? schema.cli?.textWhere
      if (given === undefined || isLater || (Array.isArray(given) && given.some(mayBeSource))) continue
      input = { ...input, [property]: typeof given === 'boolean' ? given : readFlag(flag, given) }
    }
    if (Object.keys(input).length === 0) return
    const errors = Object.entries(await this.#findErrors(input))
    refuseErrors(Object.fromEntries(errors.filter(([path]) => /^\w+/.exec(path)![0] in input)))
  }

  async complete(input: OperationInput, missing: readonly Flag[]): Promise<OperationInput> {
    const { needsOneOf: names = [] } = this.#definition.input as ObjectSchema
    let now = input
    for (const flag of missing) now = await this.#ask(flag, now)
    if (names.length === 0 || names.some((property) => now[property] !== undefined)) return now
    const choices = names.map((value) => ({ value, name: value }))
    const question = { type: 'select', message: names.join(' or '), missing: names[0]!, choices } as const
    const chosen = await ask(this.#io.terminal, question)
    return this.#ask(listFlags(this.#definition).find(({ property }) => property === chosen)!, now)
  }

  async askArg(name: string, description: string): Promise<string> {
    const schema: Schema = this.#definition.input.properties?.[name] ?? { type: 'string', description }
    return String((await this.#ask({ ...toFlag(name, schema), name: `<${name}>` }, {}))[name])
  }

  async #ask(flag: Flag, input: OperationInput, isOptional = false): Promise<OperationInput> {
    const { property: path, name: missing, schema } = flag
    const { terminal } = this.#io
    const { membersWhere } = schema.cli ?? {}
    const members = membersWhere?.values[String(input[membersWhere.property])]
    if (members !== undefined) return this.#askMembers(flag, members, input)
    let now = input
    const take: Take = async (value) => {
      now = placeAt(input, path, value)
      if (value === undefined) return isOptional || 'A value is required.'
      // A name is replaced by an id later, so it is not validated here.
      return schema.refersTo !== undefined || ((await this.#complain(path, now)) ?? true)
    }
    const message = path + (isOptional ? ' (optional)' : '')
    const item = memberOf(schema)
    const { meanings = {} } = item.cli ?? {}
    const values = ('enum' in item ? item.enum : undefined) ?? Object.keys(meanings)
    if (values.length > 0) {
      const choices = values.map((value) => ({ value, name: `${value}  ${meanings[value] ?? ''}`.trim() }))
      const type = schema.type === 'array' ? 'checkbox' : 'select'
      const answer = await ask(terminal, { type, message, missing, choices, validate: take })
      if (type === 'select') await take(answer)
      return now
    }
    const choices = await this.#offer(schema)
    const question = { type: 'search', message, missing, choices } as const
    if (choices.length === 0) await this.#askText({ ...flag, isText: isTextOf(flag, input) }, message, take)
    else await ask(terminal, { ...question, validate: (text: string) => take(readFlag(flag, [text])) })
    return now
  }

  async #askMembers(flag: Flag, members: Readonly<Record<string, Schema>>, input: OperationInput) {
    let now = placeAt(input, flag.property, {})
    for (const [name, schema] of Object.entries(members)) {
      const member = { ...toFlag(`${flag.property}.${name}`, schema), name: flag.name }
      now = await this.#ask(member, now, (await this.#complain(member.property, now)) === undefined)
    }
    return now
  }

  /** A record without a name is offered by its id. */
  async #offer(schema: Schema): Promise<Choice[]> {
    const { suggestions = [] } = memberOf(schema)
    if (schema.refersTo === undefined) return suggestions.map((value) => ({ value, name: value }))
    const all = (await this.#io.list(schema.refersTo).catch(() => [])).map(identify)
    return all.map(({ id, names: [name = id] }) => ({ value: id, name, description: id }))
  }

  async #askText(flag: Flag, message: string, take: Take): Promise<void> {
    const { name, schema } = flag
    const { terminal, input } = this.#io
    const items = schema.type === 'array' && schema.items.type === 'object' ? schema.items : undefined
    const form = items && shortFormOf(items)
    const shape = items === undefined ? flag.shape : 'json'
    const read = async (text: string): Promise<true | string> => {
      if (text === '') return take(undefined)
      if (form !== undefined) return take(readFlag(flag, [text]))
      const texts = shape === 'list' ? text.split(',').map((each) => each.trim()) : [text]
      const value = readFlag({ ...flag, shape }, texts)
      return take(items === undefined || Array.isArray(value) ? value : [value])
    }
    const hint = form === undefined ? (HINTS[shape] ?? '') : ` (such as ${form.example}, or JSON)`
    await ask(terminal, {
      message: message + hint,
      missing: name,
      sensitive: schema.sensitive === true,
      validate: async (answer: string) => input.readAnswer(answer, name).then(read).catch(explain),
    })
  }

  async #complain(path: string, input: OperationInput): Promise<string | undefined> {
    const errors = Object.entries(await this.#findErrors(input))
    const isBelow = (at: string) => at === path || at.startsWith(`${path}.`) || at.startsWith(`${path}[`)
    const [at, [message] = []] = errors.find(([at]) => isBelow(at)) ?? []
    return at === undefined || at === path ? message : `${at}: ${message}`
  }

  async #findErrors(input: OperationInput): Promise<PropertyErrors> {
    try {
      const tools = { ...this.#tools, validate: validateInput }
      await checkInput(tools, tools.now, this.#definition, input)
      return {}
    } catch (error) {
      const explained = explainDurations(error, this.#definition)
      if (explained instanceof CofferError) return explained.errors ?? {}
      throw error
    }
  }
}

function mayBeSource(text: string): boolean {
  return isSource(text.slice(text.indexOf('=') + 1)) || isSource(text)
}

/**
 * Returns `input` with another value at a path such as `data.number`. If the value is undefined, removes the property.
 */
function placeAt(input: OperationInput, path: string, value: unknown): OperationInput {
  const [name = '', ...below] = path.split('.')
  const { [name]: inner, ...others } = input
  const placed = below.length === 0 ? value : placeAt((inner ?? {}) as OperationInput, below.join('.'), value)
  return placed === undefined ? others : { ...others, [name]: placed }
}

function createCheckTools(clock: () => number): CheckTools {
  let expressions: ReturnType<CheckTools['expressions']> | undefined
  const load = async () => {
    const { loadExpressions } = await import('../../vault/app.js')
    return loadExpressions({ bytes: (count) => randomBytes(count) })
  }
  return { now: async () => clock(), expressions: () => (expressions ??= load()), turns: new Turns() }
}

function explain(error: unknown): string {
  if (error instanceof CofferError) return error.message
  throw error
}
