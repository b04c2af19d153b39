import { dirname, resolve } from 'node:path'
import { findFixture } from '../../assets.js'
import { isObject, parseJson } from '../../domain/json/json.js'
import { usage } from '../../errors.js'
import type { CommandContext } from '../context.js'
import type { Hooks, Presentations } from '../task.js'

const INCLUDED = ['card-alias', 'matching-hmac', 'json-webhook']

const checkFormula: Hooks = {
  gather: async (context, [file = '']) =>
    file.endsWith('.json')
      ? { code: (await readFormula(context, file)).code }
      : { code: await context.input.readFile(file, 'the file') },
  run: async ({ ask, print, args }) => print({ file: args[0], ...((await ask()) as object) }),
}

const installFormulas: Hooks = {
  gather: async (context, [name]) => {
    const formulas: object[] = []
    for (const each of name === undefined ? INCLUDED : [name]) {
      if (!INCLUDED.includes(each) && !each.endsWith('.json'))
        throw usage(`There is no formula "${each}". Give ${INCLUDED.join(', ')}, or a file: my-formula.json.`)
      const file = INCLUDED.includes(each) ? findFixture(`formulas/${each}.json`) : resolve(context.cwd, each)
      formulas.push(await readFormula(context, file))
    }
    return { formulas }
  },
}

/**
 * The value of `code` may be the path of a code file, relative to the directory of `path`.
 * @throws CofferError `usage`
 */
async function readFormula({ input, cwd }: CommandContext, path: string) {
  const formula = parseJson(await input.readFile(path, 'the file'), { source: path, code: 'usage' })
  if (!isObject(formula) || typeof formula.code !== 'string')
    throw usage(`${path} is not a formula: a JSON object with code.`)
  const { code } = formula
  if (!/^[\w./-]+\.c?js$/.test(code)) return formula
  return { ...formula, code: await input.readFile(resolve(cwd, dirname(path), code), 'the file of the code') }
}

export const presentations: Presentations = {
  'formula check': {
    arguments: [['<file>', 'formula.js, or formula.json']],
    hooks: checkFormula,
  },
  'formula install': {
    arguments: [
      [
        '[name]',
        'card-alias, matching-hmac or json-webhook (default: all three), or a JSON file with a formula',
      ],
    ],
    hooks: installFormulas,
  },
}
