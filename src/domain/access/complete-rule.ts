import { TOKEN_TYPES } from '../token/token-types.js'
import { ancestorsOf, isContainerPath } from './container.js'
import { PERMISSIONS, TRANSFORMS } from './permissions.js'

const MEANINGS: Readonly<Record<(typeof TRANSFORMS)[number], string>> = {
  redact: 'no data',
  mask: 'the data as the mask of the token shows it',
  reveal: 'the data in plaintext',
}

/**
 * Returns completions for a shell. A tab separates a completion from its description. If a shell gets only one
 * completion, the shell closes the quotes. To prevent this, a word without alternatives is completed together with the
 * next word.
 */
export function completeRule(begun: string): string[] {
  const [, start, permissions] = /^(.*?\S\s+(?:redact|mask|reveal)\s+)(.*)$/s.exec(begun) ?? []
  if (start !== undefined && permissions !== undefined) return completePermissions(start, permissions)
  const [, scope = '', word = ''] = /^(\s*(?:\d+\s*:\s*)?\S.*?\s)?(\S*)$/s.exec(begun) ?? []
  return /\S/.test(scope.replace(/^\s*\d+\s*:/, ''))
    ? completeTransform(scope, word)
    : completeContainer(begun)
}

function completeContainer(begun: string): string[] {
  const [number = ''] = /^\s*\d+\s*:\s*/.exec(begun) ?? []
  const known = TOKEN_TYPES.flatMap(({ containers }) => [...ancestorsOf(containers)])
  const containers = [...new Set(known)].sort().map((path) => number + path)
  const isWhole = isContainerPath(begun.slice(number.length))
  return isWhole ? [...containers, ...completeTransform(`${begun} `, '')] : containers
}

function completeTransform(scope: string, begun: string): string[] {
  const fitting = TRANSFORMS.filter((each) => each.startsWith(begun))
  const [only] = fitting
  if (fitting.length === 1 && only !== undefined) return completePermissions(`${scope}${only} `, '')
  return fitting.map((each) => `${scope}${each}\t${MEANINGS[each]}`)
}

function completePermissions(start: string, begun: string): string[] {
  const before = begun.slice(0, begun.search(/[^\s,]*$/))
  const given = before.split(/[\s,]+/)
  return Object.entries(PERMISSIONS)
    .filter(([name]) => !given.includes(name))
    .map(([name, { description }]) => `${start}${before}${name}\t${description}`)
}
