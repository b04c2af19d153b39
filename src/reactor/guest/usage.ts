/**
 * Static analysis of what code reads of its request, for `formula check`. Propagates the possible values of variables
 * through assignments, patterns, literals and calls of the code's own functions until a fixed point is reached. Reports
 * the positions of uses that it cannot follow.
 */
import type { Node, Program } from 'acorn'
import type { Position } from '../messages.js'
import { locate, visit } from './source.js'
import { Callable, Findings, getOrAdd, Shape, type Usage, type Value, type Values } from './usage-values.js'

export type { Usage }

type Any = Node & Record<string, unknown>

/** Ordinary code needs only a few. */
const MOST_PASSES = 100

/** What the functions in `program`, the syntax tree of `code`, read of the request. */
export function findUsage(program: Program, code: string): Usage {
  const strict = createReading(false)
  if (strict.run(program)) return strict.found.report(code)
  // It is unknown which function is exported, so each may be.
  const loose = createReading(true)
  loose.run(program)
  return loose.found.report(code)
}

/** The position of the last assignment to `module.exports`, for the error that it is not a function. */
export function findExports(program: Program, code: string): Position {
  let offset = 0
  visit(program, (node) => {
    if (node.type !== 'AssignmentExpression') return
    const { left } = node as unknown as { left: Node }
    if (code.slice(left.start, left.end).startsWith('module.exports')) offset = Math.max(offset, left.start)
  })
  return locate(code, offset)
}

/** `isLoose`: any function's first parameter may be the request. */
function createReading(isLoose: boolean) {
  /** Objects and functions by the node that creates them. */
  const known = new Map<Node, Shape | Callable>()
  const found = new Findings(isLoose)
  // biome-ignore lint/suspicious/noConfusingVoidType: what is no expression has no value
  const handlers: Readonly<Record<string, (node: Any, scope: Callable) => Values | void>> = {
    Identifier: ({ name }, scope) => scope.find(name as string) ?? [],
    ChainExpression: ({ expression }, scope) => all([expression], scope),
    AwaitExpression: ({ argument }, scope) => all([argument], scope),
    SequenceExpression: ({ expressions }, scope) => all(expressions, scope),
    ConditionalExpression: ({ test, consequent, alternate }, scope) =>
      all([test], scope) && all([consequent, alternate], scope),
    LogicalExpression: ({ left, right }, scope) => all([left, right], scope),
    MemberExpression: ({ object, property, computed }, scope) =>
      found.get(all([object], scope), nameOf(property as Any, computed, scope), property as Any),
    CallExpression: call,
    ObjectExpression: (node, scope) => fill(node, node.properties as Any[], scope),
    ArrayExpression: (node, scope) => fill(node, node.elements as Any[], scope),
    AssignmentExpression: ({ left, right }, scope) => {
      const values = all([right], scope)
      bind(left as Any, values, scope, false)
      return values
    },
    VariableDeclarator: ({ id, init }, scope) => bind(id as Any, all([init], scope), scope, true),
    FunctionDeclaration: (node, scope) => bind(node.id as Any, define(node, scope), scope, true),
    FunctionExpression: define,
    ArrowFunctionExpression: define,
    ReturnStatement: ({ argument }, scope) => addReturned(argument as Any | null, scope),
  }

  return { found, run }

  /** Runs the analysis. Returns whether it is known which function is exported. */
  function run(program: Program): boolean {
    const [top, module, exports] = [new Callable(), new Shape(), new Shape()]
    getOrAdd(module.members, 'exports').add(exports)
    getOrAdd(top.names, 'module').add(module)
    getOrAdd(top.names, 'exports').add(exports)
    const findEntries = () => {
      const exported = [...found.get([module], 'exports', program)]
      return [...exported, ...found.get(exported, 'default', program)].filter(
        (each) => each instanceof Callable,
      )
    }
    try {
      for (let pass = 0; !found.isSettled && pass < MOST_PASSES; pass++) {
        found.isSettled = true
        evaluate(program as unknown as Any, top)
        for (const entry of findEntries()) {
          entry.isEntry = true
          found.add(getOrAdd(entry.given.members, '0'), [''])
        }
      }
    } catch (error) {
      // The code is nested too deeply for the stack.
      if (!(error instanceof RangeError)) throw error
      found.isSettled = false
    }
    return findEntries().length > 0
  }

  function evaluate(node: Any | null | undefined, scope: Callable): Values {
    if (!node) return []
    const handler = handlers[node.type]
    return handler === undefined ? walk(node, scope) : (handler(node, scope) ?? [])
  }

  /** The values of all of `nodes`. */
  function all(nodes: unknown, scope: Callable): Value[] {
    return (nodes as Any[]).flatMap((each) => [...evaluate(each, scope)])
  }

  /** Most statements and conditions only read values; any other node without a handler may use them in unknown ways. */
  function walk(node: Any, scope: Callable): Values {
    const isQuiet = /^(?!Throw|ForIn|ForOf).*Statement$|^(?:Unary|Binary|Switch|Program)/.test(node.type)
    const isLost = !isQuiet || node.operator === 'in'
    for (const [name, child] of Object.entries(node)) {
      if (name === 'label' || (name === 'key' && node.computed !== true)) continue
      for (const each of Array.isArray(child) ? child : [child]) {
        if (typeof each?.type !== 'string' || typeof each.start !== 'number') continue
        const values = evaluate(each, scope)
        if (isLost) found.lose(values, each)
      }
    }
    return []
  }

  function make<V extends Shape | Callable>(node: Node, make: () => V): V {
    const made = (known.get(node) as V | undefined) ?? make()
    known.set(node, made)
    return made
  }

  /** The name of a key; undefined if it is computed at run time. */
  function nameOf(key: Any, isComputed: unknown, scope: Callable): string | undefined {
    if (isComputed !== true) return String(key.name ?? key.value)
    all([key], scope)
    return key.type === 'Literal' ? String(key.value) : undefined
  }

  function fill(node: Any, parts: readonly (Any | null)[], scope: Callable): Values {
    const shape = make(node, () => new Shape())
    for (const [index, part] of parts.entries()) {
      const isProperty = part?.type === 'Property'
      const name = isProperty ? nameOf(part.key as Any, part.computed, scope) : String(index)
      const value = (isProperty ? part.value : part?.type === 'SpreadElement' ? part.argument : part) as Any
      const values = evaluate(value, scope)
      if (part?.type === 'SpreadElement') found.add(shape.rest, values)
      else if (name === undefined) found.lose(values, value)
      else found.add(getOrAdd(shape.members, name), values)
    }
    return [shape]
  }

  function call({ callee, arguments: given }: Any, scope: Callable): Values {
    const { type, object, property, computed } = callee as Any
    let functions: Values
    if (type === 'MemberExpression') {
      const objects = all([object], scope)
      const name = nameOf(property as Any, computed, scope)
      const made = objects.filter((each) => typeof each !== 'string')
      functions = found.get(made, name, property as Any)
      // A method that is called on a part of the request may read all of it.
      found.lose(
        objects.filter((each) => typeof each === 'string'),
        property as Any,
      )
    } else functions = evaluate(callee as Any, scope)
    const known = [...functions].filter((each) => each instanceof Callable)
    for (const [index, part] of (given as Any[]).entries()) {
      const isSpread = part.type === 'SpreadElement'
      const values = all([isSpread ? part.argument : part], scope)
      for (const each of known)
        found.add(isSpread ? each.given.rest : getOrAdd(each.given.members, String(index)), values)
      if (known.length === 0) found.lose(values, part)
    }
    return known.flatMap(({ returns }) => [...returns])
  }

  function define(node: Any, outer: Callable): Values {
    const made = make(node, () => new Callable(outer))
    const { type, params, body, id } = node as Any & { params: Any[]; body: Any; id?: Any | null }
    if (isLoose) found.add(getOrAdd(made.given.members, '0'), [''])
    if (type !== 'ArrowFunctionExpression') found.add(getOrAdd(made.names, 'arguments'), [made.given])
    if (type === 'FunctionExpression' && id) bind(id, [made], made, true)
    for (const [index, param] of params.entries()) {
      if (param.type === 'RestElement') bind(param.argument as Any, [made.given], made, true)
      else bind(param, found.get([made.given], String(index), param), made, true)
    }
    if (body.type === 'BlockStatement') evaluate(body, made)
    else addReturned(body, made)
    return [made]
  }

  function addReturned(value: Any | null, scope: Callable): void {
    const values = all([value], scope)
    found.add(scope.returns, values)
    if (scope.isEntry && value) found.lose(values, value)
  }

  /** `isNew`: the names are declared in this scope. */
  function bind(pattern: Any | null, values: Values, scope: Callable, isNew: boolean): void {
    if (pattern?.type === 'Identifier') {
      const name = pattern.name as string
      found.add((isNew ? undefined : scope.find(name)) ?? getOrAdd(scope.names, name), values)
    } else if (pattern?.type === 'AssignmentPattern')
      bind(pattern.left as Any, [...values, ...all([pattern.right], scope)], scope, isNew)
    else if (pattern?.type === 'MemberExpression') assign(pattern, values, scope)
    else if (pattern?.type === 'RestElement') bind(pattern.argument as Any, values, scope, isNew)
    else if (pattern?.type === 'Property') {
      const name = nameOf(pattern.key as Any, pattern.computed, scope)
      bind(pattern.value as Any, found.get(values, name, pattern), scope, isNew)
    } else if (pattern?.type === 'ObjectPattern')
      for (const each of pattern.properties as Any[]) bind(each, values, scope, isNew)
    else if (pattern?.type === 'ArrayPattern')
      for (const [index, each] of (pattern.elements as (Any | null)[]).entries())
        bind(
          each,
          each?.type === 'RestElement' ? values : found.get(values, String(index), pattern),
          scope,
          isNew,
        )
  }

  function assign({ object, property, computed }: Any, values: Values, scope: Callable): void {
    const shapes = all([object], scope).filter((each) => each instanceof Shape)
    const name = nameOf(property as Any, computed, scope)
    if (shapes.length === 0 || name === undefined) found.lose(values, property as Any)
    else for (const { members } of shapes) found.add(getOrAdd(members, name), values)
  }
}
