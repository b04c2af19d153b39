import type { Reading } from './reading.js'

export type Mask = readonly (RegExp | string)[]

export interface TextOptions {
  /** Each slot is a character that the field adds, or a pattern for one character that the user types. */
  mask?: Mask | undefined
  validation?: RegExp | undefined
  /** Replaces all matches in the value of a request. If no replacement is given, the matches are removed. */
  transform?: RegExp | readonly [RegExp, string?] | null | undefined
  maxLength?: number | undefined
}

export function formatText(text: string, { mask, maxLength }: TextOptions): string {
  return (mask === undefined ? text : applyMask(text, mask)).slice(0, maxLength)
}

export function readText(text: string, { mask, validation, transform }: TextOptions): Reading {
  const isEmpty = text === ''
  const isValid = validation === undefined || matches(validation, text)
  const isMaskSatisfied =
    mask === undefined || (text.length === mask.length && applyMask(text, mask) === text)
  const isComplete = !isEmpty && isMaskSatisfied && isValid
  return {
    value: transform == null ? text : applyTransform(text, transform),
    isEmpty,
    isComplete,
    isValid,
    ...(mask === undefined ? {} : { isMaskSatisfied }),
    fault: isComplete ? undefined : isEmpty || !isMaskSatisfied ? 'incomplete' : 'invalid',
  }
}

/** Drops characters that fit no slot, and adds the fixed characters between the typed characters. */
export function applyMask(text: string, mask: Mask): string {
  const left = [...text]
  let result = ''
  let fixed = ''
  for (const slot of mask) {
    if (typeof slot === 'string') {
      fixed += slot
      if (left[0] === slot) left.shift()
      continue
    }
    while (left.length > 0 && !matches(slot, left[0]!)) left.shift()
    const typed = left.shift()
    if (typed === undefined) return result
    result += fixed + typed
    fixed = ''
  }
  return result === '' ? '' : result + fixed
}

function applyTransform(text: string, transform: RegExp | readonly [RegExp, string?]): string {
  const [pattern, replacement = ''] = transform instanceof RegExp ? [transform] : transform
  return text.replaceAll(new RegExp(pattern.source, `${withoutState(pattern)}g`), replacement)
}

/** A pattern with the flag `g` or `y` continues after its last match, so the text is tested without these flags. */
function matches(pattern: RegExp, text: string): boolean {
  return new RegExp(pattern.source, withoutState(pattern)).test(text)
}

const withoutState = ({ flags }: RegExp) => flags.replaceAll(/[gy]/g, '')
