/** Detokenizes arguments for `coffer reactor dev`, which runs code outside of the vault. */
import { withGrant } from '../../framework/caller/caller.js'
import { query } from '../../framework/operation.js'
import { anyJson } from '../../framework/output.js'
import { closedInput } from '../../framework/schema.js'
import { detokenize, findExpressions, USE } from '../token/detokenize.js'
import { invoking } from './react.js'

const map = { type: 'object', additionalProperties: true, sensitive: true } as const

/** Requires the same rights as the invocation of a reactor with these arguments. */
export const detokenizeArguments = query({
  ...invoking,
  name: 'reactor arguments',
  plaintext: 'refused',
  summary: 'Detokenize arguments, as a reactor with this configuration gets them.',
  input: closedInput(['args'], { args: map, configuration: map }),
  output: anyJson('The arguments with every expression replaced.'),
  cli: { isInternal: true },
  examples: [],
  check: ({ args }, tools) => findExpressions({ args }, tools),
  run: async (context, { args, configuration }, found) => {
    const invoking = context.as(withGrant('reactor:invoke', context.caller))
    return (await detokenize(invoking, { args }, found, { ...USE, configuration })).args
  },
})
