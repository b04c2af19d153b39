/** A client with a method for each operation that has a route, typed by the declarations. */
import { isObject } from '../domain/json/json.js'
import { usage } from '../errors.js'
import type { OperationInput } from '../framework/context.js'
import type { AnyOperation } from '../framework/operation.js'
import { resultOf } from '../framework/outcome.js'
import type { RoutedOperation } from '../framework/registry.js'
import type { InputOf, OperationName, ResultOf, RoutedName } from '../operations/all.js'
import { registry } from '../operations/all.js'
import { createHttpClient, type HttpClientOptions } from './http-client.js'

type Camel<Text> = Text extends `${infer First}-${infer Rest}` ? `${First}${Capitalize<Camel<Rest>>}` : Text
type Plural<Noun> = Noun extends keyof typeof IRREGULAR
  ? (typeof IRREGULAR)[Noun]
  : Noun extends `${string}${'a' | 'e' | 'o'}y`
    ? `${Noun}s`
    : Noun extends `${infer Stem}y`
      ? `${Stem}ies`
      : `${Noun & string}s`

export type Method<Name extends OperationName> =
  Record<never, never> extends InputOf<Name>
    ? (input?: InputOf<Name>) => Promise<ResultOf<Name>>
    : (input: InputOf<Name>) => Promise<ResultOf<Name>>

type PathOf<Name> = Name extends `${infer Noun} ${infer Group} ${infer Verb}`
  ? [Plural<Camel<Noun>>, Plural<Camel<Group>>, Camel<Verb>]
  : Name extends `${infer Noun} ${infer Verb}`
    ? [Plural<Camel<Noun>>, Camel<Verb>]
    : never

/** The operations as methods, such as `tokens.create({ … })`. Names of nouns and groups are plural. */
export type Methods<Names extends OperationName> = {
  readonly [Noun in PathOf<Names>[0]]: {
    [Name in Names as PathOf<Name> extends [Noun, infer Verb extends string] ? Verb : never]: Method<Name>
  } & {
    [Name in Names as PathOf<Name> extends [Noun, infer Group extends string, string] ? Group : never]: {
      [Each in Names as PathOf<Each> extends [Noun, PathOf<Name>[1], infer Verb extends string]
        ? Verb
        : never]: Method<Each>
    }
  }
}

export type Client = Methods<RoutedName>

const IRREGULAR = {
  app: 'applications',
  invite: 'invitations',
  control: 'control',
  clock: 'clock',
  '3ds': 'threeds',
} as const

/** @throws CofferError `usage` for a key or prefix that a header cannot carry */
export function createTypedClient(options: HttpClientOptions): Client {
  const http = createHttpClient(options)
  return createMethods<RoutedName, RoutedOperation>(registry.routed, async (definition, input) =>
    resultOf(await http.call(definition, input)),
  )
}

export function createMethods<Names extends OperationName, Definition extends AnyOperation>(
  definitions: readonly Definition[],
  call: (definition: Definition, input: OperationInput) => Promise<unknown>,
): Methods<Names> {
  const all: Place = {}
  for (const definition of definitions) {
    const [noun = '', ...rest] = definition.name.split(' ').map(toCamelCase)
    const verb = rest.pop()!
    const place = rest.reduce(enter, enter(all, noun))
    place[verb] = async (input = {}) => call(definition, requireObject(input, definition))
  }
  return all as unknown as Methods<Names>
}

function toCamelCase(word: string): string {
  return word.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

function requireObject(given: unknown, { name, input }: AnyOperation): OperationInput {
  if (isObject(given)) return given
  const names = Object.keys(input.properties ?? {})
  throw usage(`"${name}" takes ${names.length === 0 ? 'nothing' : `one object: { ${names.join(', ')} }`}.`)
}

interface Place {
  [name: string]: Place | ((input?: OperationInput) => Promise<unknown>)
}

function enter(place: Place, noun: string): Place {
  const isIrregular = (name: string): name is keyof typeof IRREGULAR => Object.hasOwn(IRREGULAR, name)
  const name = isIrregular(noun) ? IRREGULAR[noun] : noun.replace(/([^aeo])y$/, '$1ie').concat('s')
  place[name] ??= {}
  return place[name] as Place
}
