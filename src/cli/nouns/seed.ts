import { parseJson } from '../../domain/json/json.js'
import type { Hooks, Presentations } from '../task.js'

const applySeed: Hooks = {
  gather: async ({ input }, [path = '-']) => {
    const source = path === '-' ? 'standard input' : path
    return { seed: parseJson(await input.readFile(path, path === '-' ? source : 'the seed'), { source }) }
  },
}

export const presentations: Presentations = {
  'seed apply': {
    arguments: [['<file>', 'the seed as JSON; - reads standard input']],
    hooks: applySeed,
  },
}
