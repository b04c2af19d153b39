/** Replaces token expressions in arguments with the data of tokens in the vault or in a seed. */
import { CofferError } from '../../../errors.js'
import { loadOperation } from '../../../operations/load.js'
import type { CommandContext } from '../../context.js'
import { readSeedFile } from '../../input/seed-file.js'
import { runOperation } from '../../run.js'

const OPERATION = 'reactor arguments'

interface Given {
  args: Record<string, unknown>
  configuration: Record<string, unknown>
}

/** Opens no vault if the arguments have no expressions. @throws CofferError like `coffer reactor react` */
export async function resolveArguments(
  context: CommandContext,
  given: Given,
  seed: string | undefined,
): Promise<Record<string, unknown>> {
  if (!JSON.stringify(given.args).includes('{{')) return given.args
  const answer = seed === undefined ? askVault(context, given) : askSeed(context, given, seed)
  return (await answer) as Record<string, unknown>
}

async function askVault(context: CommandContext, given: Given): Promise<unknown> {
  const definition = await loadOperation(OPERATION)
  let answer: unknown
  const run = runOperation(
    { context, definition: definition!, args: [], options: {} },
    {
      gather: async () => ({ ...given }),
      run: async ({ ask }) => {
        answer = await ask({ ...given })
      },
    },
  )
  await run.catch((error: unknown) => {
    if (!(error instanceof CofferError) || error.code !== 'vault_missing') throw error
    const advice =
      'The arguments have token expressions. To use the tokens of a seed instead, give --seed FILE.'
    throw new CofferError(error.code, `${error.message} ${advice}`, { cause: error })
  })
  return answer
}

async function askSeed(context: CommandContext, given: Given, path: string): Promise<unknown> {
  const { clock, config } = context
  const seed = await readSeedFile(context.input, path, '--seed')
  const { openEphemeral } = await import('../../../vault/open.js')
  const { beginAsService } = await import('../../../vault/sample-applications.js')
  const { app } = await openEphemeral({ tenantName: 'seed', clock })
  try {
    await beginAsService(app)
    await app.ask({ operation: 'seed apply', input: { seed }, as: { reveal: false } } as never)
    const as = config.apiKey === undefined ? { reveal: false } : { key: config.apiKey }
    const request = { operation: OPERATION, input: { ...given }, as, noReveal: config.noReveal }
    return (await app.ask(request as never)).result
  } finally {
    await app.close()
  }
}
