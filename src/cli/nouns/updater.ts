import { write } from '../output/terminal.js'
import type { Hooks, Presentations } from '../task.js'

const uploadFile: Hooks = {
  gather: async (context, [id = '', file = '']) => ({
    id,
    file: await context.input.readFile(file, 'the file'),
  }),
}

const printFile: Hooks = {
  run: async (task, usual) => {
    const { context, ask } = task
    if (context.config.output !== undefined) return usual?.(task)
    const { file } = (await ask()) as { file: string }
    await write(context.terminal.stdout, file)
  },
}

export const presentations: Presentations = {
  'updater job upload': {
    arguments: [
      ['<id>', 'the id of the job'],
      ['<file>', 'a CSV file; - reads standard input'],
    ],
    hooks: uploadFile,
  },
  'updater job download': { hooks: printFile },
  'updater job list': { empty: 'No job yet. Create one: coffer updater job create' },
}
