/** Formats and parses the short form of access rules: `1: /pci/ mask token:read # support`. */
import { type CofferError, usage } from '../../errors.js'
import { isObject } from '../json/json.js'
import { omitUndefined } from '../omit-undefined.js'
import { suggestName } from '../text/nearest.js'
import { quoteWord } from '../text/quote-word.js'
import { CONDITION_ATTRIBUTES, type Grants, type Rule, type RuleCondition } from './access.js'
import { isContainerPath } from './container.js'
import { PERMISSIONS, TRANSFORMS } from './permissions.js'

/** The parser has checked that the permissions exist, but not that the caller may grant the permissions. */
export type WrittenRule = Omit<Rule, 'permissions'> & { permissions: string[] }
type NumberlessRule = Omit<WrittenRule, 'priority'> & { priority?: number }

const EXAMPLE = '/pci/ mask token:read'
const AND = 'and'
const MARKS: Readonly<Record<RuleCondition['operator'], string>> = { equals: '', starts_with: '*' }
const QUOTED = /^"(?:[^"\\]|\\.)*"/

/** If the short form cannot express the rule, returns JSON. Commands accept both forms. */
export function formatRule(rule: Rule): string {
  const { priority, description } = rule
  const body = formatRuleBody(rule)
  if (body === undefined) return JSON.stringify(rule)
  const comment = description === undefined ? '' : ` # ${formatDescription(description)}`
  return `${priority}: ${body}${comment}`
}

export function summarizeRights({ rules, permissions }: Grants): string {
  const sorted = [...rules].sort((a, b) => a.priority - b.priority)
  const texts = sorted.map((rule) => formatRuleBody(rule) ?? formatRule(rule))
  const count = texts.length > 1 ? `${texts.length} rules: ` : ''
  const all = permissions.join(', ')
  if (texts.length === 0) return all
  return `${count}${texts.join('; ')}${all && `; everywhere: ${all}`}`
}

function formatRuleBody({ container, conditions = [], transform, permissions }: Rule): string | undefined {
  const hasOneScope = (container === undefined) !== (conditions.length === 0)
  if (!hasOneScope || permissions.length === 0) return undefined
  const scope = container ?? conditions.map(formatCondition).join(` ${AND} `)
  return `${scope} ${transform} ${permissions.join(',')}`
}

function formatCondition({ attribute, operator, value }: RuleCondition): string {
  return `${attribute}=${isBareValue(value) ? value : quote(value)}${MARKS[operator]}`
}

function formatDescription(text: string): string {
  const isBare = text !== '' && text === text.trim() && !text.startsWith('"') && isVisible(text)
  return isBare ? text : quote(text)
}

function isBareValue(text: string): boolean {
  return /^[^\s",*]+$/.test(text) && isVisible(text)
}

function quote(text: string): string {
  return JSON.stringify(text).replaceAll(INVISIBLE, escapeUnits)
}

const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\s/gu

function isVisible(text: string): boolean {
  return /^[\x20-\x7e]*$/.test(text) || text.search(INVISIBLE) === -1
}

function escapeUnits(character: string): string {
  const units = character.split('').map((unit) => unit.charCodeAt(0).toString(16).padStart(4, '0'))
  return units.map((unit) => `\\u${unit}`).join('')
}

/**
 * Each line gives one rule, or one rule for each of its containers. A rule without a number gets the number of the
 * previous rule plus 1. `before`: the rules that precede `text`.
 * @throws CofferError `usage`
 */
export function parseRules(text: string, before: readonly unknown[] = []): WrittenRule[] {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  if (lines.length === 0) throw usage(`is empty. Write a rule such as: ${EXAMPLE}`)
  let last = priorityOf(before.at(-1))
  return lines
    .flatMap((line) => new RuleReader(line.trim()).read())
    .map(({ priority = last + 1, ...rule }) => {
      last = priority
      return { priority, ...rule }
    })
}

function priorityOf(rule: unknown): number {
  return isObject(rule) && typeof rule.priority === 'number' ? rule.priority : 0
}

class RuleReader {
  readonly #line: string
  #rest: string

  constructor(line: string) {
    this.#line = line
    this.#rest = line
  }

  read(): NumberlessRule[] {
    const [, number] = this.#take(/^(\d{1,7})\s*:\s*/) ?? []
    const first = number === undefined ? undefined : Number(number)
    const scopes = this.#rest.startsWith('/') ? this.#readContainers() : [this.#readConditions()]
    const transform = this.#readTransform()
    const permissions = this.#readPermissions(transform)
    const description = this.#readDescription()
    return scopes.map((scope, at) => ({
      ...omitUndefined({ description, priority: first && first + at }),
      ...{ ...scope, transform, permissions },
    }))
  }

  #readContainers(): { container: string }[] {
    const [text = ''] = this.#take(/^[^\s,]+(?:\s*,\s*[^\s,]+)*\s*/) ?? []
    return text.split(',').map((part) => ({ container: this.#checkContainer(part.trim()) }))
  }

  #checkContainer(path: string): string {
    if (isContainerPath(path)) return path
    const meant = pathLike(path)
    const advice = isContainerPath(meant)
      ? `; did you mean ${meant}?`
      : '. It begins and ends with "/", and has letters, digits, "-" and "_" between slashes: /pci/high/'
    throw this.#refuse(`"${path}" is not a container${advice}`)
  }

  #readConditions(): { conditions: RuleCondition[] } {
    const conditions = [this.#readCondition()]
    while (this.#take(/^and(?:\s+|$)/i) !== undefined) conditions.push(this.#readCondition())
    const [next] = /^[^\s=:]+=/.exec(this.#rest) ?? []
    if (next !== undefined) throw this.#refuse(`write "${AND}" between two conditions: ${AND} ${next}…`)
    return { conditions }
  }

  #readCondition(): RuleCondition {
    const [, name] = this.#take(/^([^\s="]+)=/) ?? []
    if (name === undefined) throw this.#refuseScope()
    const attribute = CONDITION_ATTRIBUTES.find((each) => each === name)
    if (attribute === undefined) {
      const known = `. Conditions are on ${CONDITION_ATTRIBUTES.join(' or ')}`
      throw this.#refuse(
        `"${name}" is not an attribute of conditions${suggestName(name, CONDITION_ATTRIBUTES) || known}`,
      )
    }
    const { value, isStart } = this.#readQuotedValue() ?? this.#readBareValue(attribute)
    return { attribute, operator: isStart ? 'starts_with' : 'equals', value }
  }

  #readQuotedValue() {
    const [text] = this.#take(QUOTED) ?? []
    if (text === undefined) return undefined
    const [, mark] = this.#take(/^(\*?)(?:\s+|$)/) ?? []
    return { value: this.#unquote(text), isStart: mark === MARKS.starts_with }
  }

  #readBareValue(attribute: RuleCondition['attribute']) {
    const [, word = ''] = this.#take(/^(\S+)\s*/) ?? []
    const isStart = word.endsWith(MARKS.starts_with)
    const value = isStart ? word.slice(0, -1) : word
    if (value === '')
      throw this.#refuse(`"${attribute}=${word}" has no value. Write a value such as ${attribute}=card-1`)
    if (isBareValue(value)) return { value, isStart }
    const quoted = `${attribute}=${quote(value)}${isStart ? '*' : ''}`
    throw this.#refuse(`the value of "${attribute}=${word}" needs quotes: ${quoted}`)
  }

  #unquote(text: string): string {
    try {
      return JSON.parse(text)
    } catch (error) {
      throw this.#refuse(`${text} is not a JSON string.`, error)
    }
  }

  #refuseScope(): CofferError {
    const [word = ''] = /^\S+/.exec(this.#rest) ?? []
    const isLater = word === '' || (TRANSFORMS as readonly string[]).includes(word)
    if (isLater)
      return this.#refuse(`the container is missing. Begin with one, or with / for all: ${EXAMPLE}`)
    const meant = pathLike(word)
    const advice = isContainerPath(meant) ? `; did you mean ${meant}?` : ', such as /pci/ or id=card-1'
    return this.#refuse(`"${word}" is neither a container nor a condition${advice}`)
  }

  #readTransform(): Rule['transform'] {
    const [, word] = this.#take(/^([^\s#]+)\s*/) ?? []
    const transform = TRANSFORMS.find((each) => each === word)
    if (transform !== undefined) return transform
    const choices = `One of ${TRANSFORMS.join(', ')} follows the container: ${EXAMPLE}`
    if (word === undefined) throw this.#refuse(`the transform is missing. ${choices}`)
    if (word.includes(':')) throw this.#refuse(`the transform is missing before "${word}". ${choices}`)
    throw this.#refuse(`"${word}" is not a transform${suggestName(word, TRANSFORMS) || `. ${choices}`}`)
  }

  #readPermissions(transform: string): string[] {
    const end = this.#rest.search(/(?<!\S)#/)
    const text = end === -1 ? this.#rest : this.#rest.slice(0, end)
    this.#rest = this.#rest.slice(text.length)
    const permissions = text.split(/[\s,]+/).filter((word) => word !== '')
    if (permissions.length === 0)
      throw this.#refuse(
        `permissions are missing after "${transform}". Write permissions such as token:read,token:search`,
      )
    const names = Object.keys(PERMISSIONS)
    const unknown = permissions.find((each) => !names.includes(each))
    if (unknown === undefined) return permissions
    const advice = suggestName(unknown, names) || '. List them: coffer app permissions'
    throw this.#refuse(`"${unknown}" is not a permission${advice}`)
  }

  #readDescription(): string | undefined {
    if (this.#take(/^#\s*/) === undefined) return undefined
    const isQuoted = QUOTED.exec(this.#rest)?.[0] === this.#rest
    return isQuoted ? this.#unquote(this.#rest) : this.#rest
  }

  #take(pattern: RegExp): RegExpExecArray | undefined {
    const match = pattern.exec(this.#rest) ?? undefined
    if (match !== undefined) this.#rest = this.#rest.slice(match[0].length)
    return match
  }

  #refuse(message: string, cause?: unknown): CofferError {
    return usage(`${quoteWord(this.#line)}: ${message}`, { cause })
  }
}

function pathLike(text: string): string {
  return `/${text
    .split('/')
    .filter((segment) => segment !== '')
    .join('/')}/`
}
