/** `coffer seed diff` compares a seed with the tenant of a vault or of a server. */
import { canonicalJson, isObject } from '../../domain/json/json.js'
import { CofferError, usage } from '../../errors.js'
import { compareSeeds, type Difference } from '../../operations/seed/compare-seeds.js'
import { openEphemeral } from '../../vault/open.js'
import { beginAsService } from '../../vault/sample-applications.js'
import type { CommandContext } from '../context.js'
import { readSeedFile } from '../input/seed-file.js'
import { countOf } from '../output/display.js'
import { printForRun, printNotice } from '../output/output.js'
import { runOperation } from '../run.js'
import type { TerminalCommand } from '../task.js'
import { pullTenant, readKey, reportGaps, requireUrl } from './pull.js'

type Contents = Record<string, unknown>

const PULLED = ['applications', 'formulas', 'reactors', 'proxies', 'webhooks']
const LISTS = [...PULLED, 'tokens', 'associations', 'members', 'invitations']

/** @throws CofferError `seed_differs` if there are differences */
export const diffSeed: TerminalCommand['run'] = async (context, [path = '-'], options) => {
  const seed = await readSeedFile(context.input, path, 'the seed')
  if (!isObject(seed)) throw usage('A seed is an object with lists.')
  const isServer = context.config.url !== undefined
  const reveal = isServer || options.reveal === true
  const expected = withoutDrawn(await exportOf(context, seed, reveal), seed)
  let differences: Difference[] = []
  const compare = async (actual: Contents, readable: readonly string[]) => {
    const lists = readable.filter((list) => seed[list] !== undefined)
    differences = [...compareTenant(seed, expected, actual), ...compareSeeds(expected, actual, lists)]
    const others = LISTS.filter((list) => !lists.includes(list))
    if (others.length > 0) await printNotice(context.terminal, `Not compared: ${others.join(', ')}.`)
  }
  if (isServer) {
    const url = requireUrl(context)
    const pulled = await pullTenant(context, url, await readKey(context, url, options))
    await reportGaps(context.terminal, pulled)
    // The answers of a server leave out defaults. Therefore the seed from the server, like the given seed, is applied
    // to a vault in memory and exported from that vault.
    const actual = await exportOf(context, pulled.seed as Contents, true)
    for (const list of [expected, actual]) withoutKeys(list)
    const { seed: contents } = pulled
    await compare(
      { ...actual, name: contents.name, settings: contents.settings },
      PULLED.filter((list) => list in contents),
    )
  } else {
    const definition = context.registry.find('seed export')!
    await runOperation(
      { context, definition, args: [], options: { reveal } },
      { run: async (task) => compare((await task.ask({})) as Contents, LISTS) },
    )
    if (!reveal)
      await printNotice(
        context.terminal,
        'Data and configuration were compared masked; --reveal compares their plaintext.',
      )
  }
  if (seed.tenants !== undefined)
    await printNotice(context.terminal, 'The tenants in the list `tenants` of the seed were not compared.')
  await printForRun(context, differences, {
    columns: ['list', 'name', 'difference', 'attributes'],
    hints: { empty: 'The seed and the tenant are equal.' },
  })
  if (differences.length > 0)
    throw new CofferError(
      'seed_differs',
      `The tenant differs from the seed: ${countOf(differences.length, 'record')}.`,
    )
}

/** Applies the seed to a vault in memory and exports this vault, because an export contains all defaults. */
async function exportOf(
  { clock, config }: CommandContext,
  { tenants: _, ...seed }: Contents,
  reveal: boolean,
) {
  const { app } = await openEphemeral({ tenantName: 'seed', clock })
  try {
    await beginAsService(app)
    await app.ask({ operation: 'seed apply', input: { seed }, as: { reveal: false } } as never)
    const as = { reveal: reveal && !config.noReveal }
    return (await app.ask({ operation: 'seed export', input: {}, as } as never)).result as Contents
  } finally {
    await app.close()
  }
}

/** Removes ids and keys that the vault in memory has generated. */
function withoutDrawn(exported: Contents, seed: Contents): Contents {
  const strip = (list: string, item: Contents) => {
    const given = ((seed[list] ?? []) as unknown[]).filter(isObject)
    const has = (name: string) => given.some((each) => each[name] !== undefined && each[name] === item[name])
    const names = ['id', 'key'].filter((name) => !has(name))
    return Object.fromEntries(Object.entries(item).filter(([name]) => !names.includes(name)))
  }
  const entries = Object.entries(exported).map(([list, items]) => [
    list,
    Array.isArray(items) ? items.map((item) => strip(list, item as Contents)) : items,
  ])
  return Object.fromEntries(entries)
}

/** Removes the keys of proxies, because a server does not return these keys. */
function withoutKeys(contents: Contents): void {
  for (const item of (contents.proxies ?? []) as Contents[]) delete item.key
}

function compareTenant(seed: Contents, expected: Contents, actual: Contents): Difference[] {
  const attributes = ['name', 'settings'].filter(
    (name) =>
      seed[name] !== undefined && canonicalJson(expected[name] ?? {}) !== canonicalJson(actual[name] ?? {}),
  )
  if (attributes.length === 0) return []
  return [{ list: 'tenant', name: String(expected.name), difference: 'changed', attributes }]
}
