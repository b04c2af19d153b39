/**
 * The vault of `coffer serve --demo`. The directory `.coffer-demo` contains the vault, its key file and its API keys.
 */
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rename, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { findFixture } from '../../../assets.js'
import { TestClock } from '../../../control/control-state.js'
import { API_KEY } from '../../../domain/access/application.js'
import { isObject, tryJson } from '../../../domain/json/json.js'
import { isKey } from '../../../domain/text/base58.js'
import { quoteWord } from '../../../domain/text/quote-word.js'
import { CofferError, codeOf } from '../../../errors.js'
import type { OperationName } from '../../../operations/all.js'
import type { App } from '../../../vault/app.js'
import { createVault, openVault, type VaultLocation } from '../../../vault/open.js'
import {
  beginAsService,
  ensureSampleApplications,
  SAMPLE_TYPES,
  type SampleApplications,
} from '../../../vault/sample-applications.js'
import { writeUserFile } from '../../../vault/user-file.js'
import type { CommandContext } from '../../context.js'
import { DEMO_DIRECTORY, placeOf } from '../../target/place.js'

const KEY_FILE = 'vault.key'
const SAMPLES = 'applications.json'

/**
 * Creates the demo vault if it does not exist. A person may move the clock of this vault, because its data are samples.
 * @throws CofferError the errors of `openVault`
 */
export async function openDemoVault(context: CommandContext) {
  const directory = resolve(context.cwd, DEMO_DIRECTORY)
  const clock = new TestClock(context.clock)
  const place: VaultLocation = {
    ...placeOf(context, join(directory, 'vault')),
    role: 'server',
    clock: clock.now,
    clockEnd: clock.end,
  }
  if (!existsSync(directory)) await createDemoVault(directory, place)
  const read = (name: string) => readFile(join(directory, name), 'utf8')
  const samples = tryJson(await read(SAMPLES).catch(() => ''))
  if (!areSamples(samples))
    throw new CofferError(
      'vault_damaged',
      `${join(directory, SAMPLES)} is missing or damaged. The vault in the same directory was not changed: use it with --vault ` +
        `${quoteWord(directory)}. For a new demo vault, first move this directory away: mv ${quoteWord(directory)} ${quoteWord(`${directory}.old`)}`,
    )
  const app = await openVault(place, async () => ({ kind: 'key-file', text: await read(KEY_FILE) }))
  // Each start begins with the real time, although the clock may have been moved earlier.
  await app.store.write(async (writer) => writer.storeTime({ isTrusted: true }))
  await beginAsService(app)
  return { app, clock, directory, samples }
}

/**
 * Creates the vault in a temporary directory, and renames this directory at the end. Therefore `directory` never
 * contains an incomplete vault.
 */
async function createDemoVault(directory: string, place: VaultLocation): Promise<void> {
  const staging = await mkdtemp(`${directory}.new-`)
  const save = async (name: string, text: string) => writeUserFile(join(staging, name), text)
  try {
    const opener = { kind: 'key-file', save: (_: string, text: string) => save(KEY_FILE, text) } as const
    const app = await createVault({ ...place, directory: join(staging, 'vault') }, 'demo', opener)
    try {
      await save(SAMPLES, JSON.stringify(await ensureSampleApplications(app)))
      await fill(app)
    } finally {
      await app.close()
    }
    // If another process has created the vault in the meantime, that vault is used.
    await rename(staging, directory).catch((error: unknown) => {
      if (!['ENOTEMPTY', 'EEXIST'].includes(codeOf(error))) throw error
    })
  } finally {
    await rm(staging, { recursive: true, force: true })
  }
}

/** Checks the ids and keys strictly, because commands to paste contain them. */
function areSamples(samples: unknown): samples is SampleApplications {
  if (!isObject(samples) || Object.keys(samples).length !== SAMPLE_TYPES.length) return false
  return SAMPLE_TYPES.every((type) => {
    const { id, key } = (samples as SampleApplications)[type] ?? {}
    return /^[0-9a-f-]{36}$/.test(String(id)) && isKey(String(key), API_KEY)
  })
}

async function fill(app: App): Promise<void> {
  const ask = (operation: OperationName, input: object) =>
    app.ask({ operation, input: { ...input }, as: { reveal: false } })
  const lines = (await readFile(findFixture('tokens.ndjson'), 'utf8')).trim().split('\n')
  await ask('token import', { rows: lines.map((line) => JSON.parse(line)) })
  await ask('seed apply', { seed: JSON.parse(await readFile(findFixture('seeds/demo.json'), 'utf8')) })
  // Only this token causes a delivery, because the seed creates its webhook after its tokens. The delivery is blocked
  // unless `--allow-net` allows the host of the webhook.
  await ask('token create', {
    id: 'order-17',
    type: 'token',
    data: 'Order 17',
    mask: '{{ data | slice: 6, 2 }}',
  })
}
