/**
 * What code reads of its request, as far as its text shows: the basis of `formula check`. An aid, not a proof; it
 * follows property chains and destructuring, no values.
 */
import type { Node, Program } from 'acorn'
import type { Place } from './messages.js'
import { locate, visit } from './source.js'

export interface Usage {
  /** Dotted names below `args`. */
  args: string[]
  /** Names below `configuration`. */
  configuration: string[]
}

type Any = Node & Record<string, unknown>

/** Methods that a value of `args` is likely to be asked for; they are no parameters. */
const METHODS =
  /\.(?:length|toString|toLowerCase|toUpperCase|trim|slice|substring|split|replace|replaceAll|map|filter|join|includes|startsWith|endsWith|forEach|reduce|padStart|padEnd|toFixed|match|find|some|every|keys|charAt|concat|indexOf)$/

/** What the functions in `program` read of the two parts of a request. */
export function findUsage(program: Program): Usage {
  const found = { args: new Set<string>(), configuration: new Set<string>() }
  /** Local names by the path below the request that they stand for; the request itself has the empty path. */
  const names = new Map<string, string>()
  visit(program, (node) => learnParameter(node as Any, names, found))
  // Twice, because a name may be used above the place where it is destructured.
  for (let round = 0; round < 2; round++) visit(program, (node) => learnVariable(node as Any, names, found))
  const inner = new Set<Node>()
  visit(program, (node) => {
    if (inner.has(node)) return
    const path = pathOf(node as Any, names, inner)
    if (path !== undefined) note(path, found)
  })
  return { args: withoutParents(found.args), configuration: [...found.configuration].sort() }
}

/** Where the code exports something, for the message that it is no function. */
export function findExports(program: Program, code: string): Place {
  let offset = 0
  visit(program, (node) => {
    if (node.type !== 'AssignmentExpression') return
    const { left } = node as unknown as { left: Node }
    if (code.slice(left.start, left.end).startsWith('module.exports')) offset = Math.max(offset, left.start)
  })
  return locate(code, offset)
}

type Found = Record<keyof Usage, Set<string>>

/** The first parameter of a function that is exported, or that is called as people call it, is the request. */
function learnParameter(node: Any, names: Map<string, string>, found: Found): void {
  if (!/Function/.test(node.type)) return
  const [first] = (node.params ?? []) as Any[]
  if (first === undefined) return
  if (first.type === 'Identifier' && /^(?:req|request|context|event|input)$/.test(first.name as string))
    names.set(first.name as string, '')
  if (first.type === 'ObjectPattern' && hasKey(first, ['args', 'configuration']))
    learnPattern(first, '', names, found)
}

function hasKey(pattern: Any, wanted: readonly string[]): boolean {
  return (pattern.properties as Any[]).some(({ key }) =>
    wanted.includes((key as Any | undefined)?.name as string),
  )
}

function learnVariable(node: Any, names: Map<string, string>, found: Found): void {
  if (node.type !== 'VariableDeclarator' || node.init === null) return
  const path = pathOf(skipDefault(node.init as Any), names)
  if (path !== undefined) learnPattern(node.id as Any, path, names, found)
}

/** `const x = req.args || {}` */
function skipDefault(node: Any): Any {
  return node.type === 'LogicalExpression' ? skipDefault(node.left as Any) : node
}

function learnPattern(pattern: Any, path: string, names: Map<string, string>, found: Found): void {
  if (pattern.type === 'AssignmentPattern') learnPattern(pattern.left as Any, path, names, found)
  if (pattern.type === 'Identifier') {
    names.set(pattern.name as string, path)
    note(path, found)
    return
  }
  if (pattern.type !== 'ObjectPattern') return
  for (const property of pattern.properties as Any[]) {
    const { key, computed } = property as unknown as { key?: Any; computed?: boolean }
    const name = (key?.name ?? key?.value) as string | undefined
    if (property.type === 'Property' && name !== undefined && computed !== true)
      learnPattern(property.value as Any, join(path, name), names, found)
  }
}

/** The path below the request that a chain of property reads leads to. */
function pathOf(node: Any, names: ReadonlyMap<string, string>, inner?: Set<Node>): string | undefined {
  if (node.type === 'ChainExpression') return pathOf(node.expression as Any, names, inner)
  if (node.type === 'Identifier') return names.get(node.name as string)
  if (node.type !== 'MemberExpression') return undefined
  const object = node.object as Any
  const path = pathOf(object, names, inner)
  const property = node.property as Any
  const name = node.computed === true ? property.value : property.name
  if (path === undefined || typeof name !== 'string') return undefined
  inner?.add(object)
  return join(path, name)
}

function join(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`
}

function note(path: string, found: Found): void {
  const [part, ...rest] = path.replace(METHODS, '').split('.')
  if (rest.length === 0) return
  if (part === 'args') found.args.add(rest.join('.'))
  if (part === 'configuration') found.configuration.add(rest[0]!)
}

/** `card` says nothing beside `card.number`. */
function withoutParents(paths: ReadonlySet<string>): string[] {
  return [...paths].filter((path) => ![...paths].some((other) => other.startsWith(`${path}.`))).sort()
}
