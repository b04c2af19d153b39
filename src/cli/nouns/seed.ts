import { readSeedFile } from '../input/seed-file.js'
import type { Hooks, Presentations } from '../task.js'

const applySeed: Hooks = {
  gather: async ({ input }, [path = '-']) => ({ seed: await readSeedFile(input, path, 'the seed') }),
}

export const presentations: Presentations = {
  'seed apply': {
    arguments: [
      ['<file>', 'the seed as JSON, or as YAML in a file .yaml or .yml; - reads JSON from standard input'],
    ],
    hooks: applySeed,
  },
}
