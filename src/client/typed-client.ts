/** A client with a method for each operation that has a route, typed by the declarations. */
import type { OperationInput } from '../framework/operation.js'
import { resultOf } from '../framework/outcome.js'
import {
  type InputOf,
  type OperationName,
  type ResultOf,
  type RoutedName,
  registry,
} from '../operations/all.js'
import { createHttpClient, type HttpClientOptions } from './http-client.js'

type Camel<Text> = Text extends `${infer First}-${infer Rest}` ? `${First}${Capitalize<Camel<Rest>>}` : Text
type Plural<Noun> = Noun extends keyof typeof IRREGULAR
  ? (typeof IRREGULAR)[Noun]
  : Noun extends `${string}${'a' | 'e' | 'o'}y`
    ? `${Noun}s`
    : Noun extends `${infer Stem}y`
      ? `${Stem}ies`
      : `${Noun & string}s`

/** The method of an operation: all of its input as one object, optional if nothing in it is required. */
export type Method<Name extends OperationName> =
  Record<never, never> extends InputOf<Name>
    ? (input?: InputOf<Name>) => Promise<ResultOf<Name>>
    : (input: InputOf<Name>) => Promise<ResultOf<Name>>

type PathOf<Name> = Name extends `${infer Noun} ${infer Group} ${infer Verb}`
  ? [Plural<Noun>, Plural<Group>, Camel<Verb>]
  : Name extends `${infer Noun} ${infer Verb}`
    ? [Plural<Noun>, Camel<Verb>]
    : never

type Nouns = PathOf<RoutedName>[0]
type Verbs<Noun> = {
  [Name in RoutedName as PathOf<Name> extends [Noun, infer Verb extends string] ? Verb : never]: Method<Name>
}
type Groups<Noun> = {
  [Name in RoutedName as PathOf<Name> extends [Noun, infer Group extends string, string] ? Group : never]: {
    [Each in RoutedName as PathOf<Each> extends [Noun, PathOf<Name>[1], infer Verb extends string]
      ? Verb
      : never]: Method<Each>
  }
}

/** Operations as `client.tokens.create({ … })`; nouns and groups are in the plural. */
export type Client = { readonly [Noun in Nouns]: Verbs<Noun> & Groups<Noun> }

/** Nouns whose property has another name. */
const IRREGULAR = { app: 'applications', invite: 'invitations' } as const

/** @throws CofferError `usage` for a key or prefix that no header can carry */
export function createTypedClient(options: HttpClientOptions): Client {
  const http = createHttpClient(options)
  const client: Record<string, unknown> = {}
  for (const definition of registry.routed) {
    const { noun, group, verb } = definition
    let place = enter(client, noun)
    if (group !== undefined) place = enter(place, group)
    const method = verb.replaceAll(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
    place[method] = async (input: OperationInput = {}) => resultOf(await http.call(definition, input))
  }
  return client as Client
}

function enter(place: Record<string, unknown>, noun: string): Record<string, unknown> {
  const name = pluralOf(noun)
  place[name] ??= {}
  return place[name] as Record<string, unknown>
}

function pluralOf(noun: string): string {
  if (Object.hasOwn(IRREGULAR, noun)) return IRREGULAR[noun as keyof typeof IRREGULAR]
  return noun.replace(/([^aeo])y$/, '$1ie').concat('s')
}
