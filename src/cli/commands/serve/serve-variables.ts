/** The environment variables of the flags of `serve`. */
import { type Environment, isTrue } from '../../../config.js'
import type { Options } from '../../context/task.js'
import { keyOf } from '../../input/options.js'
import { nameServeVariable, SERVE_OPTIONS } from './serve-flags.js'

/** The flags, by commander's names, with those that the environment sets where the line does not. */
export function withServeVariables(flags: Options, env: Environment): Record<string, unknown> {
  const merged = { ...flags }
  for (const [flag] of SERVE_OPTIONS) {
    const text = env[nameServeVariable(flag)]
    if (text === undefined || text === '') continue
    const [word = '', isNegated] = flag.split(' ')[0]!.slice(2).split(/^no-/).toReversed()
    const key = keyOf(word)
    // Commander gives a negated flag that is absent the value true.
    if (isNegated !== undefined) merged[key] = merged[key] !== false && !isTrue(text)
    else merged[key] ??= flag.includes(' ') ? text : isTrue(text)
  }
  return merged
}
