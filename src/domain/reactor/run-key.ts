import { RUN_KEY } from '../access/application.js'

const ANY_KEY = new RegExp(`${RUN_KEY}[1-9A-HJ-NP-Za-km-z]{22}`, 'g')

/** Valid JSON stays valid. */
export function withoutRunKeys(text: string): string {
  return text.includes(RUN_KEY) ? text.replaceAll(ANY_KEY, `${RUN_KEY}[withheld]`) : text
}

export function withoutRunKeysIn<T>(value: T): T {
  const json = JSON.stringify(value) ?? ''
  const changed = withoutRunKeys(json)
  return changed === json ? value : JSON.parse(changed)
}
