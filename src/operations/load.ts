/** Loads the operations of one noun without those of the others, for commands, which end soon. */
import { createRegistry, type Noun, type RegisteredOperation, type Registry } from '../framework/registry.js'

/** The registry of the one noun that `name`, `noun verb`, begins with; undefined where there is no such operation. */
export async function loadNounOf(name: string): Promise<Registry | undefined> {
  const [word = ''] = name.split(' ')
  if (!/^[a-z]+$/.test(word)) return undefined
  let noun: Noun
  try {
    noun = (await import(`./nouns/${word}.js`)).noun
  } catch {
    // A file that exists and fails to load fails again, and is reported, where all of them are loaded.
    return undefined
  }
  const registry = createRegistry([noun], { isChecked: true })
  return registry.find(name) === undefined ? undefined : registry
}

/** The registry of the noun that `name` begins with, or of all nouns where there is no such operation. */
export async function loadRegistryFor(name: string): Promise<Registry> {
  return (await loadNounOf(name)) ?? (await import('./all.js')).registry
}

export async function loadOperation(name: string): Promise<RegisteredOperation | undefined> {
  return (await loadRegistryFor(name)).find(name)
}
