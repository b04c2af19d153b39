/** Reactors as the vault's owner works on them: the last runs, which may show data, and code that is in no vault yet. */
import { CofferError } from '../../errors.js'
import { operation } from '../../framework/operation.js'
import { anyJson, arrayOf, count, date, number, object, text, texts } from '../../framework/output.js'
import { closedInput } from '../../framework/schema.js'
import { KEPT_RUNS, listRuns } from './reactor-log.js'

export const listReactorRuns = operation({
  name: 'reactor logs',
  audience: 'owner',
  summary: 'Show the last runs of a reactor: outcome, time, memory, console.',
  details: 'At most 100 are kept. They may show what the code was given, so they are for you alone.',
  input: closedInput(['id'], {
    id: { type: 'string', description: 'The reactor.' },
    number: {
      type: 'integer',
      minimum: 0,
      maximum: KEPT_RUNS,
      default: 20,
      short: 'n',
      description: 'How many of the newest runs.',
    },
  }),
  positionals: ['id'],
  output: arrayOf(
    object({
      id: text,
      reactor_id: text,
      outcome: text,
      status: count,
      'detail?': text,
      'errors?': { type: 'object', additionalProperties: texts },
      duration_ms: number,
      memory_mib: number,
      console: arrayOf(object({ level: text, text })),
      'stack?': text,
      created_at: date,
      trace_id: text,
    }),
  ),
  columns: ['created_at', 'outcome', 'status', 'duration_ms', 'memory_mib'],
  examples: ['coffer reactor logs 9a1f…', 'coffer reactor logs 9a1f… -f'],
  run: async ({ store, caller }, { id, number: most = 20 }) => {
    if ((await store.get('reactor', caller.tenant, id)) === undefined)
      throw new CofferError('not_found', 'There is no reactor with this id.')
    return (await listRuns(store, caller.tenant, id)).slice(0, most).toReversed()
  },
})

const map = { type: 'object', additionalProperties: true } as const

export const developReactor = operation({
  name: 'reactor dev',
  audience: 'owner',
  summary: 'Run a file as a reactor would, and with --watch on every save.',
  details:
    'The same runtime and limits as in production, but no vault: arguments are taken as they are, and the code has\n' +
    'no client. What it prints is on standard error, what it returns on standard output.',
  input: closedInput(['code'], { code: { type: 'string' }, args: map, configuration: map }),
  output: anyJson('What the code returned: `raw` and `tokenize`.'),
  examples: [`coffer reactor dev formula.js --args '{"name":"Ada"}' --watch`],
  runOffline: async ({ reactors }, { code, args = {}, configuration = {} }) => {
    const runtime = await reactors()
    const run = await runtime.run({ tenant: 0, reactor: 'dev', code, args, configuration, client: null })
    return { ...run, sandbox: runtime.sandbox }
  },
})
