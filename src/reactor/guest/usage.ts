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
  const strict = new Reading(false)
  if (strict.run(program)) return strict.found.report(code)
  // It is unknown which function is exported, so each may be.
  const loose = new Reading(true)
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

class Reading {
  /** Objects and functions by the node that creates them. */
  readonly #made = new Map<Node, Shape | Callable>()
  readonly #isLoose: boolean
  readonly found: Findings

  /** `isLoose`: any function's first parameter may be the request. */
  constructor(isLoose: boolean) {
    this.#isLoose = isLoose
    this.found = new Findings(isLoose)
  }

  /** Runs the analysis. Returns whether it is known which function is exported. */
  run(program: Program): boolean {
    const [top, module, exports] = [new Callable(), new Shape(), new Shape()]
    getOrAdd(module.members, 'exports').add(exports)
    getOrAdd(top.names, 'module').add(module)
    getOrAdd(top.names, 'exports').add(exports)
    const findEntries = () => {
      const exported = [...this.found.get([module], 'exports', program)]
      return [...exported, ...this.found.get(exported, 'default', program)].filter(
        (each) => each instanceof Callable,
      )
    }
    try {
      for (let pass = 0; !this.found.isSettled && pass < MOST_PASSES; pass++) {
        this.found.isSettled = true
        this.#evaluate(program as unknown as Any, top)
        for (const entry of findEntries()) {
          entry.isEntry = true
          this.found.add(getOrAdd(entry.given.members, '0'), [''])
        }
      }
    } catch (error) {
      // The code is nested too deeply for the stack.
      if (!(error instanceof RangeError)) throw error
      this.found.isSettled = false
    }
    return findEntries().length > 0
  }

  #evaluate(node: Any | null | undefined, scope: Callable): Values {
    if (!node) return []
    const handler = this.#handlers[node.type]
    return handler === undefined ? this.#walk(node, scope) : (handler(node, scope) ?? [])
  }

  /** The values of all of `nodes`. */
  #all(nodes: unknown, scope: Callable): Value[] {
    return (nodes as Any[]).flatMap((each) => [...this.#evaluate(each, scope)])
  }

  // biome-ignore lint/suspicious/noConfusingVoidType: what is no expression has no value
  readonly #handlers: Readonly<Record<string, (node: Any, scope: Callable) => Values | void>> = {
    Identifier: ({ name }, scope) => scope.find(name as string) ?? [],
    ChainExpression: ({ expression }, scope) => this.#all([expression], scope),
    AwaitExpression: ({ argument }, scope) => this.#all([argument], scope),
    SequenceExpression: ({ expressions }, scope) => this.#all(expressions, scope),
    ConditionalExpression: ({ test, consequent, alternate }, scope) =>
      this.#all([test], scope) && this.#all([consequent, alternate], scope),
    LogicalExpression: ({ left, right }, scope) => this.#all([left, right], scope),
    MemberExpression: ({ object, property, computed }, scope) =>
      this.found.get(
        this.#all([object], scope),
        this.#nameOf(property as Any, computed, scope),
        property as Any,
      ),
    CallExpression: (node, scope) => this.#call(node, scope),
    ObjectExpression: (node, scope) => this.#fill(node, node.properties as Any[], scope),
    ArrayExpression: (node, scope) => this.#fill(node, node.elements as Any[], scope),
    AssignmentExpression: ({ left, right }, scope) => {
      const values = this.#all([right], scope)
      this.#bind(left as Any, values, scope, false)
      return values
    },
    VariableDeclarator: ({ id, init }, scope) => this.#bind(id as Any, this.#all([init], scope), scope, true),
    FunctionDeclaration: (node, scope) => this.#bind(node.id as Any, this.#define(node, scope), scope, true),
    FunctionExpression: (node, scope) => this.#define(node, scope),
    ArrowFunctionExpression: (node, scope) => this.#define(node, scope),
    ReturnStatement: ({ argument }, scope) => this.#return(argument as Any | null, scope),
  }

  /** Most statements and conditions only read values; any other node without a handler may use them in unknown ways. */
  #walk(node: Any, scope: Callable): Values {
    const isQuiet = /^(?!Throw|ForIn|ForOf).*Statement$|^(?:Unary|Binary|Switch|Program)/.test(node.type)
    const isLost = !isQuiet || node.operator === 'in'
    for (const [name, child] of Object.entries(node)) {
      if (name === 'label' || (name === 'key' && node.computed !== true)) continue
      for (const each of Array.isArray(child) ? child : [child]) {
        if (typeof each?.type !== 'string' || typeof each.start !== 'number') continue
        const values = this.#evaluate(each, scope)
        if (isLost) this.found.lose(values, each)
      }
    }
    return []
  }

  #make<V extends Shape | Callable>(node: Node, make: () => V): V {
    const made = (this.#made.get(node) as V | undefined) ?? make()
    this.#made.set(node, made)
    return made
  }

  /** The name of a key; undefined if it is computed at run time. */
  #nameOf(key: Any, isComputed: unknown, scope: Callable): string | undefined {
    if (isComputed !== true) return String(key.name ?? key.value)
    this.#all([key], scope)
    return key.type === 'Literal' ? String(key.value) : undefined
  }

  #fill(node: Any, parts: readonly (Any | null)[], scope: Callable): Values {
    const shape = this.#make(node, () => new Shape())
    for (const [index, part] of parts.entries()) {
      const isProperty = part?.type === 'Property'
      const name = isProperty ? this.#nameOf(part.key as Any, part.computed, scope) : String(index)
      const value = (isProperty ? part.value : part?.type === 'SpreadElement' ? part.argument : part) as Any
      const values = this.#evaluate(value, scope)
      if (part?.type === 'SpreadElement') this.found.add(shape.rest, values)
      else if (name === undefined) this.found.lose(values, value)
      else this.found.add(getOrAdd(shape.members, name), values)
    }
    return [shape]
  }

  #call({ callee, arguments: given }: Any, scope: Callable): Values {
    const { type, object, property, computed } = callee as Any
    let functions: Values
    if (type === 'MemberExpression') {
      const objects = this.#all([object], scope)
      const name = this.#nameOf(property as Any, computed, scope)
      const made = objects.filter((each) => typeof each !== 'string')
      functions = this.found.get(made, name, property as Any)
      // A method that is called on a part of the request may read all of it.
      this.found.lose(
        objects.filter((each) => typeof each === 'string'),
        property as Any,
      )
    } else functions = this.#evaluate(callee as Any, scope)
    const known = [...functions].filter((each) => each instanceof Callable)
    for (const [index, part] of (given as Any[]).entries()) {
      const isSpread = part.type === 'SpreadElement'
      const values = this.#all([isSpread ? part.argument : part], scope)
      for (const each of known)
        this.found.add(isSpread ? each.given.rest : getOrAdd(each.given.members, String(index)), values)
      if (known.length === 0) this.found.lose(values, part)
    }
    return known.flatMap(({ returns }) => [...returns])
  }

  #define(node: Any, outer: Callable): Values {
    const made = this.#make(node, () => new Callable(outer))
    const { type, params, body, id } = node as Any & { params: Any[]; body: Any; id?: Any | null }
    if (this.#isLoose) this.found.add(getOrAdd(made.given.members, '0'), [''])
    if (type !== 'ArrowFunctionExpression') this.found.add(getOrAdd(made.names, 'arguments'), [made.given])
    if (type === 'FunctionExpression' && id) this.#bind(id, [made], made, true)
    for (const [index, param] of params.entries()) {
      if (param.type === 'RestElement') this.#bind(param.argument as Any, [made.given], made, true)
      else this.#bind(param, this.found.get([made.given], String(index), param), made, true)
    }
    if (body.type === 'BlockStatement') this.#evaluate(body, made)
    else this.#return(body, made)
    return [made]
  }

  #return(value: Any | null, scope: Callable): void {
    const values = this.#all([value], scope)
    this.found.add(scope.returns, values)
    if (scope.isEntry && value) this.found.lose(values, value)
  }

  /** `isNew`: the names are declared in this scope. */
  #bind(pattern: Any | null, values: Values, scope: Callable, isNew: boolean): void {
    if (pattern?.type === 'Identifier') {
      const name = pattern.name as string
      this.found.add((isNew ? undefined : scope.find(name)) ?? getOrAdd(scope.names, name), values)
    } else if (pattern?.type === 'AssignmentPattern')
      this.#bind(pattern.left as Any, [...values, ...this.#all([pattern.right], scope)], scope, isNew)
    else if (pattern?.type === 'MemberExpression') this.#assign(pattern, values, scope)
    else if (pattern?.type === 'RestElement') this.#bind(pattern.argument as Any, values, scope, isNew)
    else if (pattern?.type === 'Property') {
      const name = this.#nameOf(pattern.key as Any, pattern.computed, scope)
      this.#bind(pattern.value as Any, this.found.get(values, name, pattern), scope, isNew)
    } else if (pattern?.type === 'ObjectPattern')
      for (const each of pattern.properties as Any[]) this.#bind(each, values, scope, isNew)
    else if (pattern?.type === 'ArrayPattern')
      for (const [index, each] of (pattern.elements as (Any | null)[]).entries())
        this.#bind(
          each,
          each?.type === 'RestElement' ? values : this.found.get(values, String(index), pattern),
          scope,
          isNew,
        )
  }

  #assign({ object, property, computed }: Any, values: Values, scope: Callable): void {
    const shapes = this.#all([object], scope).filter((each) => each instanceof Shape)
    const name = this.#nameOf(property as Any, computed, scope)
    if (shapes.length === 0 || name === undefined) this.found.lose(values, property as Any)
    else for (const { members } of shapes) this.found.add(getOrAdd(members, name), values)
  }
}
