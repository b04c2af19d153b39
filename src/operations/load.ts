/** Loads only the operations of the noun that a command needs, so that the command starts quickly. */
import { CofferError } from '../errors.js'
import { createRegistry, type Noun, type RegisteredOperation, type Registry } from '../framework/registry.js'

export async function loadNounOf(name: string): Promise<Registry | undefined> {
  const [word = ''] = name.split(' ')
  if (!/^[a-z0-9-]+$/.test(word)) return undefined
  let noun: Noun
  try {
    noun = (await import(`./${word === 'app' ? 'application' : word}/noun.js`)).noun
  } catch {
    // If the file exists but cannot be loaded, its error is reported later, when all nouns are loaded.
    return undefined
  }
  const registry = createRegistry([noun])
  return registry.find(name) === undefined ? undefined : registry
}

export async function loadRegistryFor(name: string): Promise<Registry> {
  return (await loadNounOf(name)) ?? (await import('./all.js')).registry
}

export async function loadOperation(name: string): Promise<RegisteredOperation | undefined> {
  return (await loadRegistryFor(name)).find(name)
}

/**
 * The returned function is like {@link loadOperation}, but loads each operation only once.
 * The function throws CofferError `not_found` for an unknown name.
 */
export function rememberOperations(): (name: string) => Promise<RegisteredOperation> {
  const known = new Map<string, RegisteredOperation>()
  return async (name) => {
    const found = known.get(name) ?? (await loadOperation(name))
    if (found === undefined) throw new CofferError('not_found', `There is no operation "${name}".`)
    known.set(name, found)
    return found
  }
}
