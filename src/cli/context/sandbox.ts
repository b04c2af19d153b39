/** What holds reactor code on this machine, in words. */
import type { Sandbox } from '../../framework/reactor-runtime.js'

/** What every Linux can give; without one of these an escape from the realm reaches further. */
const EXPECTED = [
  'network_namespace',
  'process_namespace',
  'user_namespace',
  'no_new_descriptors',
  'ends_with_host',
] as const satisfies readonly (keyof Sandbox)[]

/** One line: what is in force, and what is not. */
export function tellSandbox(sandbox: Sandbox): string {
  const list = (isInForce: boolean) =>
    Object.entries(sandbox)
      .filter(([, value]) => value === isInForce)
      .map(([name]) => name.replaceAll('_', ' '))
      .join(', ')
  const missing = list(false)
  return `Reactor code is held by: ${list(true)}.${missing === '' ? '' : ` Not here: ${missing}.`}`
}

/** What to do about what is missing; undefined when nothing is that could be there. */
export function tellGaps(sandbox: Sandbox): string | undefined {
  const missing = EXPECTED.filter((name) => !sandbox[name]).map((name) => name.replaceAll('_', ' '))
  if (missing.length === 0) return undefined
  return `Reactor code is held without ${missing.join(', ')}. On Linux, install util-linux and allow user namespaces; the README says how.`
}
