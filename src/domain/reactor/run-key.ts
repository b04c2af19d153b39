/** The keys of runs in texts that are stored or shown. A key is worth nothing after its run, and is still never kept. */
import { RUN_KEY } from '../access/application.js'

const ANY_KEY = new RegExp(`${RUN_KEY}[1-9A-HJ-NP-Za-km-z]{22}`, 'g')

/** Replaces each key of a run in the text. In JSON, the text stays valid. */
export function withoutRunKeys(text: string): string {
  return text.includes(RUN_KEY) ? text.replaceAll(ANY_KEY, `${RUN_KEY}[withheld]`) : text
}

/** Copies a JSON value without the keys of runs. Returns the value itself if it has none. */
export function withoutRunKeysIn<T>(value: T): T {
  const json = JSON.stringify(value) ?? ''
  const changed = withoutRunKeys(json)
  return changed === json ? value : JSON.parse(changed)
}
