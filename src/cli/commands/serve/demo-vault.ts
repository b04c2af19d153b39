/** The vault of `coffer serve --demo`: sample tokens in `.coffer-demo`, with its key file and API keys. */
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { API_KEY } from '../../../domain/access/application.js'
import { isObject, tryJson } from '../../../domain/json/json.js'
import { isKey } from '../../../domain/text/base58.js'
import { CofferError, codeOf } from '../../../errors.js'
import type { OperationName } from '../../../operations/all.js'
import type { App } from '../../../vault/app.js'
import { createVault, openVault, type VaultLocation } from '../../../vault/open.js'
import {
  beginBeyondAuthorizer,
  ensureSampleApplications,
  SAMPLE_TYPES,
  type SampleApplications,
} from '../../../vault/sample-applications.js'
import type { CommandContext } from '../../context.js'
import { DEMO_DIRECTORY, placeOf } from '../../target/credentials.js'
import { findFixture } from '../fixtures.js'

const KEY_FILE = 'vault.key'
const SAMPLES = 'applications.json'

/** Opens the demo vault; creates it with sample data first, if there is none. @throws CofferError like `openVault` */
export async function openDemoVault(context: CommandContext) {
  const directory = resolve(context.cwd, DEMO_DIRECTORY)
  const place: VaultLocation = { ...placeOf(context, join(directory, 'vault')), role: 'server' }
  if (!existsSync(directory)) await createDemoVault(directory, place)
  const read = (name: string) => readFile(join(directory, name), 'utf8')
  const samples = tryJson(await read(SAMPLES).catch(() => ''))
  if (!areSamples(samples))
    throw new CofferError('vault_damaged', `${directory} is not whole. Remove it and start again.`)
  const app = await openVault(place, async () => ({ kind: 'key-file', text: await read(KEY_FILE) }))
  await beginBeyondAuthorizer(app)
  return { app, directory, samples }
}

/** Creates it beside its place and moves it there when it is whole, so that a start that is killed spoils nothing. */
async function createDemoVault(directory: string, place: VaultLocation): Promise<void> {
  const staging = await mkdtemp(`${directory}.new-`)
  const save = (name: string, text: string) =>
    writeFile(join(staging, name), text, { mode: 0o600, flag: 'wx' })
  try {
    const opener = { kind: 'key-file', save: (_: string, text: string) => save(KEY_FILE, text) } as const
    const app = await createVault({ ...place, directory: join(staging, 'vault') }, 'demo', opener)
    try {
      await save(SAMPLES, JSON.stringify(await ensureSampleApplications(app)))
      await fill(app)
    } finally {
      await app.close()
    }
    // Fails if another start was faster: its vault is then opened, or is in use.
    await rename(staging, directory).catch((error: unknown) => {
      if (!['ENOTEMPTY', 'EEXIST'].includes(codeOf(error))) throw error
    })
  } finally {
    await rm(staging, { recursive: true, force: true })
  }
}

/** Validates the contents of the file, because they are printed in commands to be pasted. */
function areSamples(samples: unknown): samples is SampleApplications {
  if (!isObject(samples) || Object.keys(samples).length !== SAMPLE_TYPES.length) return false
  return SAMPLE_TYPES.every((type) => {
    const { id, key } = (samples as SampleApplications)[type] ?? {}
    return /^[0-9a-f-]{36}$/.test(String(id)) && isKey(String(key), API_KEY)
  })
}

async function fill(app: App): Promise<void> {
  const ask = async (operation: OperationName, input: object) => {
    const { result } = await app.ask({ operation, input: { ...input }, as: { reveal: false } })
    return result as Record<string, unknown>
  }
  const lines = (await readFile(findFixture('tokens.ndjson'), 'utf8')).trim().split('\n')
  await ask('token import', { rows: [...lines.map((line) => JSON.parse(line)), ...TOKENS] })
  await ask('token link', { parent_id: 'customer-42', child_id: 'card-1' })
  const code = 'module.exports = async ({ args }) => ({ raw: { hello: args.name } })'
  const formula = await ask('formula create', { name: 'greet', type: 'private', code })
  await ask('reactor create', { name: 'greet', formula })
  await ask('proxy create', { name: 'payments', destination_url: 'https://api.example.com/v1' })
  await ask('invite create', { email: 'grace@example.com' })
  const { id } = await ask('invite create', { email: 'ada@example.com' })
  const { link } = await ask('invite outbox', { id })
  await ask('invite accept', { link, first_name: 'Ada', last_name: 'Lovelace' })
}

/** The tokens that examples name. */
const TOKENS = [
  {
    id: 'card-1',
    type: 'card',
    data: { number: '4242424242424242', expiration_month: 12, expiration_year: 2030 },
    metadata: { customer: '42' },
  },
  { id: 'ada', type: 'token', data: { name: 'Ada Lovelace' }, mask: { name: '{{ data.name }}' } },
  { id: 'customer-42', type: 'token', data: 'Customer 42' },
]
