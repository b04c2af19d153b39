import { isObject } from '../../domain/json/json.js'
import { quoteWord } from '../../domain/text/quote-word.js'
import { CofferError } from '../../errors.js'
import type { OperationInput } from '../../framework/context.js'
import { itemOutput } from '../../framework/page.js'
import type { RegisteredOperation, Registry } from '../../framework/registry.js'
import { display } from './display.js'

interface Performed {
  readonly definition: RegisteredOperation
  readonly input: OperationInput
  readonly result: unknown
}

/**
 * Adds to the error that the change was made, and how to see the result. Returns the error unchanged if the operation
 * only reads.
 */
export function explainLoss(error: unknown, registry: Registry, performed: Performed): unknown {
  const { definition } = performed
  if (!(error instanceof CofferError) || isReading(definition)) return error
  const advice = hasSecret(performed) ? replaceSecret(performed) : showAgain(registry, performed)
  const text = [`coffer ${definition.name} was carried out.`, error.message, advice]
  return new CofferError(error.code, text.filter((each) => each !== '').join(' '), { cause: error })
}

export function hasSecret({ definition, result }: Omit<Performed, 'input'>): boolean {
  const item = itemOutput(definition.output ?? {})
  const properties = (item.type === 'object' && item.properties) || {}
  const isSecret = (name: string) => properties[name]?.isShownOnce === true
  return [result].flat().some((each) => isObject(each) && Object.keys(each).some(isSecret))
}

function isReading({ endpoint, log }: RegisteredOperation): boolean {
  return endpoint?.method === 'GET' || log?.operation === 'read'
}

function replaceSecret({ definition, input, result }: Performed): string {
  const { noun, group } = definition
  if (noun !== 'app')
    return `The secret in the output is lost. To get a new secret, run the command again: coffer ${definition.name}`
  if (Array.isArray(result)) return 'The keys are lost. Create others: coffer app key create NAME'
  const { id } = result as { id: string }
  const application = quote(group === 'key' ? input.application_id : id)
  const another = `Create another: coffer app key create ${application}`
  if (group !== 'key') return `The key is lost. ${another}`
  return `The key is lost. ${another}, and delete the lost one: coffer app key delete ${application} ${quote(id)}`
}

function showAgain(registry: Registry, { definition, result }: Performed): string {
  const { noun, group } = definition
  const path = group === undefined ? noun : `${noun} ${group}`
  const id = isObject(result) ? result.id : undefined
  if (typeof id === 'string' && registry.find(`${path} get`)?.positionals.length === 1)
    return `Show the result: coffer ${path} get ${quote(id)}`
  const isListed = Array.isArray(result) && registry.find(`${path} list`) !== undefined
  return isListed ? `Show the results: coffer ${path} list` : ''
}

function quote(id: unknown): string {
  return quoteWord(display(String(id)))
}
