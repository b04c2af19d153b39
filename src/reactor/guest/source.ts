/**
 * Parses reactor code, and rewrites harmless text that SES refuses. Runs in the guest or in the process of the linker,
 * because parsing hostile text can take long.
 */
import { type Comment, type Node, type Options, Parser, type Program, type Token, tokTypes } from 'acorn'
import type { Fault, Position } from '../messages.js'
import { findMisplaced } from './es-module.js'

export class SourceError extends Error {
  readonly line: number
  readonly column: number
  readonly others: readonly Fault[]

  constructor(message: string, { line, column }: Position, others: readonly Fault[] = []) {
    super(message)
    this.line = line
    this.column = column
    this.others = others
  }
}

export const START: Position = { line: 1, column: 1 }

const MAX_MESSAGE_CHARACTERS = 200
/** An error explains at most this many statements of an ES module. */
const MAX_EXPLAINED = 20

type Edit = Record<'start' | 'end', number> & { text: string }

/** SES refuses these texts even in strings and comments: see `transforms.js` of SES. */
const SUSPECT = /(\\*)(import(?=\s*(?:\(|\/[/*]))|eval(?=\s*\()|<(?=!--))|(?<=--)>/g
const ESCAPES: Readonly<Record<string, string>> = { import: '\\x69mport', eval: '\\x65val', '<': '\\x3c' }
const NAMES = new Map(Object.entries({ import: '\\u0069mport', eval: '\\u0065val' }))

/**
 * Parses CommonJS code in strict mode. The result has the same lines and the same meaning, but `String.raw`, `source`
 * and `toString` may give other texts.
 * @throws SourceError for syntax errors, `import()`, direct `eval()` and HTML-like comments
 */
export function prepareSource(code: string): string {
  const tokens: Token[] = []
  const comments: Comment[] = []
  const program = parse(code, tokens, comments)
  const edits = [...findTokenEdits(code, tokens), ...findCommentEdits(code, comments)]
  visit(program, (node) => {
    refuseNode(code, node)
    const edit = findNameEdit(code, node)
    if (edit !== undefined) edits.push(edit)
  })
  return applyEdits(code, edits)
}

/**
 * Like {@link prepareSource}, for a package. Parsing a large package takes seconds and 80 MiB, so a text is parsed only
 * if it contains something that SES refuses. SES reports syntax errors of other packages.
 */
export function preparePackage(text: string): string {
  const code = text.replace(/^#!/, '//')
  return code.search(SUSPECT) < 0 ? code : prepareSource(code)
}

function locate(code: string, offset: number): Position {
  const before = code.slice(0, offset).split(/\r\n|[\n\r\u2028\u2029]/)
  return { line: before.length, column: before.at(-1)!.length + 1 }
}

/**
 * Calls `see` for `root` and all nodes below it. If `see` returns false for a node, the nodes below that node are
 * skipped. Uses no recursion, because nodes can be nested deeply.
 */
function visit(root: Node, see: (node: Node) => unknown): void {
  const open: unknown[] = [root]
  while (open.length > 0) {
    const value = open.pop()
    if (typeof value !== 'object' || value === null || value instanceof RegExp) continue
    const isNode = 'type' in value && typeof value.type === 'string' && 'start' in value
    if (isNode && see(value as Node) === false) continue
    for (const inner of Object.values(value)) if (typeof inner === 'object') open.push(inner)
  }
}

/** The standard parser would accept code of the sloppy mode, for which SES later reports no position. */
class StrictParser extends Parser {
  strict: boolean

  constructor(options: Options, input: string, startPosition?: number) {
    super(options, input, startPosition)
    this.strict = true
  }
}

function parse(code: string, tokens: Token[], comments: Comment[]): Program {
  try {
    return StrictParser.parse(code, {
      ecmaVersion: 2024,
      sourceType: 'script',
      allowReturnOutsideFunction: true,
      allowHashBang: false,
      onToken: tokens,
      onComment: comments,
    })
  } catch (error) {
    const { message, loc } = error as SyntaxError & { loc?: { line: number; column: number } }
    // The position at which the stack overflows depends on the size of the stack, so no position is reported.
    if (error instanceof RangeError || message.startsWith('Not enough stack space'))
      throw new SourceError('The code nests too deeply to be compiled', START)
    const explained = explainModule(code)
    if (explained !== undefined) throw explained
    const place = loc === undefined ? START : { line: loc.line, column: loc.column + 1 }
    throw new SourceError(message.replace(/ \(\d+:\d+\)$/, ''), place)
  }
}

/** Returns an error that explains how to write an ES module as CommonJS. Undefined if the code is no ES module. */
function explainModule(code: string): SourceError | undefined {
  // Most code with a syntax error contains none of these words, and is not parsed again.
  if (!/\b(?:import|export|await)\b/.test(code)) return undefined
  let program: Program
  try {
    const options = { allowAwaitOutsideFunction: true, allowReturnOutsideFunction: true } as const
    program = Parser.parse(code, { ecmaVersion: 2024, sourceType: 'module', ...options })
  } catch {
    // The code is no ES module either, so the caller reports the first error.
    return undefined
  }
  const [first, ...others] = findMisplaced(code, program, findOuterAwaits(program))
    .slice(0, MAX_EXPLAINED)
    .map(({ offset, message }) => ({ message, ...locate(code, offset) }))
  return first && new SourceError(first.message, first, others)
}

function findOuterAwaits(program: Program): Node[] {
  const found: Node[] = []
  const see = (node: Node) => {
    const isAwait = node.type === 'AwaitExpression' || ('await' in node && node.await === true)
    if (isAwait) found.push(node)
    return !/Function|StaticBlock/.test(node.type)
  }
  visit(program, see)
  return found
}

function* findTokenEdits(code: string, tokens: readonly Token[]): Generator<Edit> {
  let previous: Token | undefined
  for (const token of tokens) {
    const { type, start, end } = token
    if (type === tokTypes.string || type === tokTypes.template || type === tokTypes.regexp) {
      const text = code.slice(start, end)
      const escaped = text.replace(SUSPECT, escapeSuspect)
      if (escaped !== text) yield { start, end, text: escaped }
    }
    // `n --> 0` is a decrement and a comparison, not an HTML-like comment.
    if (previous?.end === start && code[start] === '>' && code.startsWith('--', start - 2))
      yield { start, end: start, text: ' ' }
    previous = token
  }
}

/** Escapes by character code work in strings, templates and regular expressions. */
function escapeSuspect(_whole: string, slashes?: string, word?: string): string {
  if (slashes === undefined || word === undefined) return '\\x3e'
  // If the number of backslashes is odd, the last backslash escapes the first letter of the word, so this backslash is
  // dropped.
  return `${slashes.slice(slashes.length % 2)}${ESCAPES[word]}`
}

function* findCommentEdits(code: string, comments: readonly Comment[]): Generator<Edit> {
  for (const { start, end } of comments) {
    const text = code.slice(start, end)
    if (text.startsWith('<!--') || text.startsWith('-->'))
      throw new SourceError('HTML-like comments are not part of this language; use //', locate(code, start))
    if (text.search(SUSPECT) < 0) continue
    // Keeps line breaks, because a line break inside a comment can end a statement.
    yield { start, end, text: text.replaceAll(/[^\n\r\u2028\u2029]/g, ' ') }
  }
}

function refuseNode(code: string, node: Node): void {
  if (node.type === 'ImportExpression') {
    const { source } = node as unknown as { source: Node }
    const text = `import() is not available to reactor code; use require(${code.slice(source.start, source.end)})`
    throw new SourceError(text.slice(0, MAX_MESSAGE_CHARACTERS), locate(code, node.start))
  }
  if (node.type !== 'CallExpression') return
  const { callee } = node as unknown as { callee: Node & { name?: string } }
  if (callee.type === 'Identifier' && callee.name === 'eval')
    throw new SourceError('eval() is not available to reactor code', locate(code, node.start))
}

/** Escapes property names that SES would mistake for an import or a direct eval: `{ import(x) {} }`, `a.eval(b)`. */
function findNameEdit(code: string, node: Node): Edit | undefined {
  const { key, property, computed } = node as Node & { key?: Node; property?: Node; computed?: boolean }
  const name = key ?? property
  if (name === undefined || computed === true) return undefined
  const start = name.type === 'PrivateIdentifier' ? name.start + 1 : name.start
  const text = NAMES.get(code.slice(start, name.end))
  return text === undefined ? undefined : { start, end: name.end, text }
}

function applyEdits(code: string, edits: Edit[]): string {
  if (edits.length === 0) return code
  edits.sort((a, b) => a.start - b.start)
  const pieces: string[] = []
  let at = 0
  for (const { start, end, text } of edits) {
    // The key and the value of a shorthand property have the same position and the same edit.
    if (start < at) continue
    pieces.push(code.slice(at, start), text)
    at = end
  }
  pieces.push(code.slice(at))
  return pieces.join('')
}
