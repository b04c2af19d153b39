/**
 * Removes the keys of runs from texts that are stored or shown. A key is never stored, although the key is useless
 * after its run has ended.
 */
import { RUN_KEY } from '../access/application.js'

const ANY_KEY = new RegExp(`${RUN_KEY}[1-9A-HJ-NP-Za-km-z]{22}`, 'g')

/** Replaces each key of a run in the text. Valid JSON stays valid. */
export function withoutRunKeys(text: string): string {
  return text.includes(RUN_KEY) ? text.replaceAll(ANY_KEY, `${RUN_KEY}[withheld]`) : text
}

/** Copies a JSON value without the keys of runs. If the value has none of these keys, returns the value itself. */
export function withoutRunKeysIn<T>(value: T): T {
  const json = JSON.stringify(value) ?? ''
  const changed = withoutRunKeys(json)
  return changed === json ? value : JSON.parse(changed)
}
