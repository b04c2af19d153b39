/** Explains how to write the statements of an ES module in CommonJS, the language of reactor code. */
import type { Node, Program } from 'acorn'

export interface Misplaced {
  offset: number
  message: string
}

// biome-ignore lint/suspicious/noExplicitAny: the members depend on the type of the node
type Any = Node & Record<string, any>

const MAX_SHOWN_CHARACTERS = 120

/** `program` must be `code`, parsed as an ES module. Returns an empty list if the code is also valid as a script. */
export function findMisplaced(code: string, program: Program, awaits: readonly Node[]): Misplaced[] {
  const body = program.body as Any[]
  const hasDefault = body.some(({ type }) => type === 'ExportDefaultDeclaration')
  const found: Misplaced[] = []
  for (const node of body) {
    const text = rewrite(code, node, hasDefault)
    if (text !== undefined)
      found.push({
        offset: node.start,
        message: `write \`${clip(text)}\` instead, because reactor code is CommonJS, not an ES module`,
      })
  }
  for (const { start } of awaits) {
    const line = lineAt(code, start).trim()
    found.push({
      offset: start,
      message: `write \`module.exports = async (event) => { ${clip(line)} }\`, because await works only in a function`,
    })
  }
  return found.sort((a, b) => a.offset - b.offset)
}

function rewrite(code: string, node: Any, hasDefault: boolean): string | undefined {
  switch (node.type) {
    case 'ImportDeclaration':
      return rewriteImport(code, node)
    case 'ExportDefaultDeclaration':
      return `module.exports = ${firstLine(code, node.declaration)}`
    case 'ExportAllDeclaration':
      return `Object.assign(exports, ${requireOf(code, node)})`
    case 'ExportNamedDeclaration':
      return rewriteNamed(code, node, hasDefault)
    default:
      return undefined
  }
}

function rewriteImport(code: string, node: Any): string {
  const specifiers = node.specifiers as Any[]
  const required = requireOf(code, node)
  const whole = specifiers.find(({ type }) => type !== 'ImportSpecifier')?.local.name as string | undefined
  const named = specifiers
    .filter(({ type }) => type === 'ImportSpecifier')
    .map(({ imported, local }) => {
      const name = code.slice(imported.start, imported.end)
      return name === local.name ? name : `${name}: ${local.name}`
    })
  if (specifiers.length === 0) return required
  if (named.length === 0) return `const ${whole} = ${required}`
  const pattern = `{ ${named.join(', ')} }`
  return whole === undefined
    ? `const ${pattern} = ${required}`
    : `const ${whole} = ${required}, ${pattern} = ${whole}`
}

/** In a module with a default export, nobody uses the named exports, so only the word `export` is removed. */
function rewriteNamed(code: string, node: Any, hasDefault: boolean): string {
  const { declaration, source } = node
  if (source) return `Object.assign(exports, ${requireOf(code, node)})`
  if (declaration) {
    const isFunction = declaration.type === 'FunctionDeclaration'
    const value = isFunction ? declaration : declaration.declarations?.[0]?.init
    const isHandler = isFunction || /Function/.test(value?.type ?? '')
    return hasDefault || !isHandler
      ? firstLine(code, declaration)
      : `module.exports = ${firstLine(code, value)}`
  }
  const specifiers = node.specifiers as Any[]
  const chosen = specifiers.find(({ exported }) => exported.name === 'default') ?? specifiers[0]
  return chosen === undefined ? '' : `module.exports = ${chosen.local.name}`
}

function requireOf(code: string, { source }: Any): string {
  return `require(${code.slice(source.start, source.end)})`
}

function firstLine(code: string, { start, end }: Node): string {
  return code
    .slice(start, end)
    .split(/[\n\r\u2028\u2029]/, 1)[0]!
    .trimEnd()
}

function lineAt(code: string, offset: number): string {
  const from = Math.max(code.lastIndexOf('\n', offset - 1), code.lastIndexOf('\r', offset - 1)) + 1
  return code.slice(from).split(/[\n\r\u2028\u2029]/, 1)[0]!
}

function clip(text: string): string {
  return text.length <= MAX_SHOWN_CHARACTERS ? text : `${text.slice(0, MAX_SHOWN_CHARACTERS)}…`
}
