/**
 * Lists what code reads of its request, for `formula check`: the properties that it names, followed through variables and
 * patterns, not through calls. Parts that are passed on as a whole, or read by a computed name, are listed as unknown.
 */
import type { Node, Program } from 'acorn'
import type { Position } from '../messages.js'
import { locate, visit } from './source.js'

export interface Usage {
  /** Dotted names below `args`. */
  args: string[]
  /** Names below `configuration`. */
  configuration: string[]
  /** Parts of the request, with lines, of which more may be read there. */
  unknown: string[]
}

// biome-ignore lint/suspicious/noExplicitAny: a node of any type
type Any = any
/** By variable: the path of the part of the request that it holds, empty for the request itself. */
type Scope = Map<string, string>

const PARTS = ['args', 'configuration', 'req']
const MOST_LINES = 3

/** The position of the last assignment to `module.exports`, for the error that it is not a function. */
export function findExports(program: Program, code: string): Position {
  return locate(code, Math.max(0, ...findExported(program, code).map(({ left }) => left.start)))
}

/** The assignments to `exports` and `module.exports`, or to properties of them. */
function findExported(program: Program, code: string): { left: Node; right: Any }[] {
  const found: Any[] = []
  visit(program, (node) => {
    const { type, left } = node as Any
    if (type === 'AssignmentExpression' && /^(?:module\.)?exports\b/.test(code.slice(left.start, left.end)))
      found.push(node)
  })
  return found
}

/** Lists the parts of the request that the exported functions in `program`, the syntax tree of `code`, read. */
export function findUsage(program: Program, code: string): Usage {
  const reading = new Reading()
  try {
    const entries = findEntries(program, code)
    if (entries.length === 0) reading.miss('', program)
    for (const entry of entries) reading.walkFunction(entry, new Map(), '')
  } catch (error) {
    // The code is nested too deeply for the stack.
    if (!(error instanceof RangeError)) throw error
    reading.miss('', program)
  }
  return reading.report(code)
}

/** The exported functions, from their assignments or from the declarations of their names. */
function findEntries(program: Program, code: string): Node[] {
  const exported = findExported(program, code).flatMap(({ right }) =>
    right.type === 'ObjectExpression' ? right.properties.map(({ value }: Any) => value) : [right],
  )
  const names = exported.map((node) => node?.name)
  const found = exported.filter(isFunction)
  visit(program, (node) => {
    const { type, id, init } = node as Any
    if (id?.type !== 'Identifier' || !names.includes(id.name)) return
    if (type === 'FunctionDeclaration') found.push(node)
    else if (isFunction(init)) found.push(init)
  })
  return found
}

function isFunction(node: Any): boolean {
  return /Function/.test(node?.type ?? '')
}

class Reading {
  readonly #read = new Set<string>()
  /** The offsets of uses that are not followed, by path. */
  readonly #missed = new Map<string, Set<number>>()

  report(code: string): Usage {
    const below = (part: string) =>
      [...this.#read].filter((path) => path.startsWith(`${part}.`)).map((path) => path.slice(part.length + 1))
    const args = below('args')
    const parents = new Set(
      args.flatMap((path) => [...path.matchAll(/\./g)].map(({ index }) => path.slice(0, index))),
    )
    const lines = (offsets: Set<number>) =>
      [...new Set([...offsets].sort((a, b) => a - b).map((offset) => locate(code, offset).line))].slice(
        0,
        MOST_LINES,
      )
    return {
      // Without `card` if `card.number` is read.
      args: args.filter((path) => !parents.has(path)).sort(),
      configuration: [...new Set(below('configuration').map((path) => path.split('.', 1)[0]!))].sort(),
      unknown: [...this.#missed].map(
        ([path, offsets]) => `${path || 'the request'} (line ${lines(offsets).join(', ')})`,
      ),
    }
  }

  miss(path: string | undefined, { start }: { start: number }): void {
    if (path === undefined) return
    this.#missed.set(path, (this.#missed.get(path) ?? new Set()).add(start))
  }

  /** `path`: of its first argument, if that is a part of the request. */
  walkFunction({ params, body }: Any, outer: Scope, path?: string): void {
    const scope = new Map(outer)
    for (const [index, param] of params.entries()) {
      if (param.type === 'RestElement' && path !== undefined) this.miss(path, param)
      this.#bind(param, index === 0 && param.type !== 'RestElement' ? path : undefined, scope)
    }
    this.#walk(body, scope)
  }

  #walk(node: Any, scope: Scope): void {
    if (Array.isArray(node)) for (const each of node) this.#walk(each, scope)
    else if (isFunction(node)) this.walkFunction(node, scope)
    else if (typeof node?.type === 'string') this.#walkNode(node, scope)
  }

  #walkNode(node: Any, scope: Scope): void {
    const { type, callee } = node
    if (type === 'VariableDeclarator') this.#bind(node.id, this.#resolve(node.init, scope), scope)
    else if (type === 'AssignmentExpression' && node.operator === '=')
      this.#bind(node.left, this.#resolve(node.right, scope), scope)
    else if (/^(?:Identifier|MemberExpression|ChainExpression)$/.test(type))
      this.#lose(this.#resolve(node, scope), node)
    else if (/^(?:Property|MethodDefinition|PropertyDefinition)$/.test(type))
      this.#walk(node.computed ? [node.key, node.value] : node.value, scope)
    else if (type === 'CallExpression' && callee.type === 'MemberExpression') {
      // A method of a value reads the value, not a property of the request.
      this.#lose(this.#resolve(callee.object, scope), callee)
      this.#walk(callee.computed ? [callee.property, node.arguments] : node.arguments, scope)
    } else if (type === 'UnaryExpression')
      // The operator passes no part on.
      this.#resolve(node.argument, scope)
    else for (const child of Object.values(node)) if (typeof child === 'object') this.#walk(child, scope)
  }

  /** Reports a part that is used as a whole; a path with a dot is a property that was read. */
  #lose(path: string | undefined, node: Node): void {
    if (path?.includes('.') === false) this.miss(path, node)
  }

  /** The path of an expression that is a part of the request; any other is walked. */
  #resolve(node: Any, scope: Scope): string | undefined {
    if (node?.type === 'Identifier') return scope.get(node.name)
    if (node?.type === 'ChainExpression') return this.#resolve(node.expression, scope)
    if (node?.type === 'AwaitExpression') return this.#resolve(node.argument, scope)
    if (node?.type === 'LogicalExpression' && node.operator !== '&&') {
      this.#walk(node.right, scope)
      return this.#resolve(node.left, scope)
    }
    if (node?.type !== 'MemberExpression') return void this.#walk(node, scope)
    return this.#follow(this.#resolve(node.object, scope), node, node.property, scope)
  }

  /** The path below `path` that a key names. */
  #follow(path: string | undefined, { computed }: Any, key: Any, scope: Scope): string | undefined {
    const isNamed = !computed || key.type === 'Literal'
    if (computed) this.#walk(key, scope)
    if (path === undefined) return undefined
    if (!isNamed) return void this.miss(path, key)
    const name = String(key.name ?? key.value)
    if (path === '') return PARTS.includes(name) ? name : undefined
    // Only the arguments are declared: req is the whole request.
    if (path === 'req') return name === 'args' ? name : undefined
    // An index and the length of a value are no parameters.
    if (/^\d+$/.test(name) || (name === 'length' && path.includes('.'))) return undefined
    this.#read.add(`${path}.${name}`)
    return `${path}.${name}`
  }

  /** Binds the names of a pattern to `path` and the paths below it, or unbinds them if it is undefined. */
  #bind(pattern: Any, path: string | undefined, scope: Scope): void {
    if (pattern?.type === 'Identifier') {
      if (path === undefined) scope.delete(pattern.name)
      else scope.set(pattern.name, path)
    } else if (pattern?.type === 'AssignmentPattern') {
      this.#walk(pattern.right, scope)
      this.#bind(pattern.left, path, scope)
    } else if (pattern?.type === 'RestElement') this.#bind(pattern.argument, path, scope)
    else if (pattern?.type === 'ObjectPattern')
      for (const each of pattern.properties)
        if (each.type === 'RestElement') this.#bind(each, path, scope)
        else this.#bind(each.value, this.#follow(path, each, each.key, scope), scope)
    else {
      if (path !== undefined) this.#lose(path, pattern)
      if (pattern?.type === 'ArrayPattern')
        for (const each of pattern.elements) this.#bind(each, undefined, scope)
      else this.#walk(pattern, scope)
    }
  }
}
