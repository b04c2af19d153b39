/** Commands with a flag that has them perform another operation: a form of the command. */
import { usage } from '../../errors.js'
import type { RegisteredOperation, Registry } from '../../framework/registry.js'
import { listFlags } from './options.js'

/** The operations that the command of this one performs besides. */
export function listForms(registry: Registry, { name }: RegisteredOperation): RegisteredOperation[] {
  return registry.operations.filter(({ form }) => form?.command === name)
}

type Options = Readonly<Record<string, unknown>>

/**
 * The operation that a command performs with these options, and the options for it: the flag of a form may be without a
 * value.
 * @throws CofferError `usage` for a flag of another one
 */
export function chooseForm(
  definition: RegisteredOperation,
  forms: readonly RegisteredOperation[],
  options: Options,
): { chosen: RegisteredOperation; options: Options } {
  const chosen = forms.find(({ form }) => options[form!.flag] !== undefined) ?? definition
  const known = new Set(listFlags(chosen).map(({ name }) => name))
  for (const each of [definition, ...forms])
    for (const { name, key } of listFlags(each))
      if (options[key] !== undefined && !known.has(name)) {
        const problem = chosen.form ? `does not go with --${chosen.form.flag}` : `needs --${each.form!.flag}`
        throw usage(`${name} ${problem}.`)
      }
  const given = Object.entries(options).filter(([key, value]) => key !== chosen.form?.flag || value !== true)
  return { chosen, options: Object.fromEntries(given) }
}
