/** Operations on reactors for the vault's owner: the stored runs, and running code from a file. */
import { operation } from '../../framework/operation.js'
import { anyJson, arrayOf, count, date, number, object, text, texts } from '../../framework/output.js'
import { requireRecord } from '../../framework/require-record.js'
import { closedInput } from '../../framework/schema.js'
import { KEPT_RUNS, listRuns } from './reactor-log.js'

export const listReactorRuns = operation({
  name: 'reactor logs',
  audience: 'owner',
  summary: 'List the last runs of a reactor: outcome, duration, memory, console.',
  details:
    'At most 100 runs are stored. They may contain the arguments, so only the owner of the vault can read them.',
  input: closedInput(['id'], {
    id: { type: 'string', refersTo: 'reactor', description: 'The id of the reactor, or its name.' },
    number: {
      type: 'integer',
      minimum: 0,
      maximum: KEPT_RUNS,
      default: 20,
      short: 'n',
      description: 'The number of runs.',
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
  examples: ['coffer reactor logs greet', 'coffer reactor logs greet -n 1 -o ndjson'],
  run: async (context, { id, number: most = 20 }) => {
    await requireRecord(context, 'reactor', id)
    return (await listRuns(context.store, context.caller.tenant, id)).slice(0, most).toReversed()
  },
})

const map = { type: 'object', additionalProperties: true } as const

export const developReactor = operation({
  name: 'reactor dev',
  audience: 'owner',
  summary: 'Run a file as a reactor; with --watch again on every save.',
  details:
    'The same runtime and limits as in a vault, but without one: arguments are not detokenized, and the code has no\n' +
    'client. Console output goes to standard error, the result to standard output.',
  input: closedInput(['code'], { code: { type: 'string' }, args: map, configuration: map }),
  output: anyJson('The result of the code: `raw` and `tokenize`.'),
  examples: [
    `echo 'module.exports = async ({ args }) => ({ raw: { hello: args.name } })' > greet.js && coffer reactor dev greet.js --args name=Ada`,
  ],
  runOffline: async ({ reactors }, { code, args = {}, configuration = {} }) => {
    const runtime = await reactors()
    const run = await runtime.run({
      tenant: 0,
      reactor: 'dev',
      code,
      args,
      rest: {},
      configuration,
      client: null,
    })
    return { ...run, sandbox: runtime.sandbox }
  },
})
