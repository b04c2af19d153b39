/** `coffer seed apply`: reads the seed from a file. */
import { parseJson } from '../../domain/json/json.js'
import type { Hooks } from '../task.js'

export const apply: Hooks = {
  gather: async ({ input }, [path = '-']) => {
    const source = path === '-' ? 'standard input' : path
    return { seed: parseJson(await input.readFile(path, path === '-' ? source : 'the seed'), { source }) }
  },
}
