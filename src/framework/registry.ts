import { isControl, successOf } from './declaration.js'
import type { AnyOperation } from './operation.js'
import { itemOutput } from './page.js'
import type { ObjectSchema, Schema } from './schema.js'

export interface Noun {
  readonly name: string
  readonly summary: string
  readonly groups?: Readonly<Record<string, string>>
  readonly operations: readonly AnyOperation[]
}

/** The path is a template such as `/tokens/{id}`. Unlike the path of a request, a template contains no secret. */
export type Endpoint = Readonly<ReturnType<typeof endpointOf>>

export type RegisteredOperation = AnyOperation & {
  readonly noun: string
  readonly group?: string
  readonly verb: string
  readonly columns: readonly string[]
  /** The parameters of the route come first. If there is a route, all other positional properties are flags too. */
  readonly positionals: readonly string[]
  readonly endpoint?: Endpoint
}

export type RoutedOperation = RegisteredOperation & { readonly endpoint: Endpoint }

export type RegisteredRelay = Extract<RegisteredOperation, { kind: 'relay' }>

export type Registry = Readonly<ReturnType<typeof createRegistry>>

/**
 * Registers each operation at its first use, because a command uses only one of many operations. `routed`: the
 * operations with a route outside of the control plane. `controls`: the operations of the control plane. Requires:
 * `test/operations/registry.test.ts` passes.
 */
export function createRegistry(nouns: readonly Noun[]) {
  const definitions = new Map(nouns.flatMap(({ operations }) => operations.map((each) => [each.name, each])))
  const registered = new Map<string, RegisteredOperation>()
  const find = (name: string) => {
    const definition = definitions.get(name)
    if (definition !== undefined && !registered.has(name)) registered.set(name, register(definition))
    return registered.get(name)
  }
  const select = (isWanted: (definition: AnyOperation) => boolean) =>
    [...definitions.values()].filter(isWanted).map(({ name }) => find(name)!)
  const listRouted = (ofControl: boolean) =>
    select((definition) => isControl(definition) === ofControl).filter(
      (each): each is RoutedOperation => each.endpoint !== undefined,
    )
  return {
    nouns,
    find,
    formsOf: (name: string) => select(({ cli }) => cli?.form?.command === name),
    get operations() {
      return select(() => true)
    },
    get routed() {
      return listRouted(false)
    },
    get controls() {
      return listRouted(true)
    },
  }
}

function register(definition: AnyOperation): RegisteredOperation {
  const { name, route, cli: { positionals = [], ...cli } = {}, output } = definition
  const [noun = '', ...rest] = name.split(' ')
  const verb = rest.pop() ?? ''
  const { columns = itemOutput(output ?? {}).columns ?? [] } = cli
  const group = rest.length === 0 ? {} : { group: rest.join(' ') }
  const registered = { ...definition, noun, ...group, verb, positionals, columns }
  if (route === undefined) return registered
  const endpoint = endpointOf(definition, route)
  // A parameter of the path that has a default is no argument of the command.
  const asked = endpoint.parameters.filter((each) => !isDefaulted(definition, each))
  return { ...registered, positionals: [...asked, ...positionals], endpoint }
}

function isDefaulted({ input }: Pick<AnyOperation, 'input'>, property: string): boolean {
  const { properties = {} } = input as ObjectSchema
  return 'default' in (properties[property] ?? {})
}

function endpointOf(definition: AnyOperation, route: string) {
  const [method = '', path = ''] = route.split(' ')
  const parameters = [...path.matchAll(/\{([a-z_]+)\}/g)].map((match) => match[1]!)
  const { properties = {} } = definition.input as ObjectSchema
  const others: Record<string, Schema> = Object.fromEntries(
    Object.entries(properties).filter(([key]) => !parameters.includes(key)),
  )
  const isInQuery = method === 'GET' || method === 'DELETE'
  return {
    method,
    path,
    segments: path.split('/').slice(1),
    parameters,
    success: successOf(definition),
    query: isInQuery ? others : {},
    body: isInQuery ? {} : others,
    takesBody: !isInQuery && Object.keys(others).length > 0,
  }
}
