/** The vault of `coffer serve --demo`: sample tokens in `.coffer-demo`, with its key file and API keys. */
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { API_KEY } from '../../../domain/access/application.js'
import { isKey } from '../../../domain/text/base58.js'
import { CofferError } from '../../../errors.js'
import type { List } from '../../../framework/page.js'
import { createFormula } from '../../../operations/formula/formula.js'
import { acceptInvitationLink } from '../../../operations/invite/accept-invitation.js'
import { createInvitation } from '../../../operations/invite/invite.js'
import { type OutboxMail, readOutbox } from '../../../operations/invite/outbox.js'
import { createProxy } from '../../../operations/proxy/proxy.js'
import { createReactor } from '../../../operations/reactor/reactor.js'
import { linkTokens } from '../../../operations/token/association.js'
import { createToken } from '../../../operations/token/token.js'
import type { App } from '../../../vault/app.js'
import { createVault, openVault, type VaultLocation } from '../../../vault/open.js'
import {
  ensureSampleApplications,
  performAsOwner,
  SAMPLE_TYPES,
  type SampleApplications,
} from '../../../vault/sample-applications.js'
import type { CommandContext } from '../../context.js'
import { DEMO_DIRECTORY } from '../../target/credentials.js'
import { findFixture } from '../fixtures.js'

const KEY_FILE = 'vault.key'
const SAMPLES = 'applications.json'
/** The ending of the directory in which a vault is created, before six random characters. */
const STAGING = '.new-'
const RANDOM_CHARACTERS = 6

/** The age at which a directory that a killed start has left is removed. */
const ABANDONED_MS = 10 * 60 * 1000

/** Opens the demo vault; creates it with sample data first, if there is none. @throws CofferError like `openVault` */
export async function openDemoVault({ cwd, pid, clock }: CommandContext, notice: (text: string) => void) {
  const directory = resolve(cwd, DEMO_DIRECTORY)
  const samplesFile = join(directory, SAMPLES)
  const place: VaultLocation = { directory: join(directory, 'vault'), pid, clock, notice, role: 'server' }
  if (!existsSync(samplesFile)) {
    if (existsSync(join(directory, KEY_FILE)))
      throw new CofferError('vault_damaged', `${directory} is incomplete. Remove it and start again.`)
    await createDemoVault(directory, place, clock())
  }
  const text = () => readFile(join(directory, KEY_FILE), 'utf8')
  const app = await openVault(place, async () => ({ kind: 'key-file', text: await text() }))
  const samples = parseSamples(await readFile(samplesFile, 'utf8'))
  if (samples !== undefined) return { app, directory, samples }
  await app.close()
  throw new CofferError('vault_damaged', `${samplesFile} was changed. Remove ${directory}.`)
}

/** Creates it beside its place and moves it there when it is whole, so that a start that is killed spoils nothing. */
async function createDemoVault(directory: string, place: VaultLocation, now: number): Promise<void> {
  await removeAbandoned(directory, now - ABANDONED_MS)
  const staging = await mkdtemp(`${directory}${STAGING}`)
  try {
    const save = (_: string, text: string) =>
      writeFile(join(staging, KEY_FILE), text, { mode: 0o600, flag: 'wx' })
    const app = await createVault({ ...place, directory: join(staging, 'vault') }, 'demo', {
      kind: 'key-file',
      save,
    })
    try {
      const samples = await ensureSampleApplications(app)
      await fill(app)
      await writeFile(join(staging, SAMPLES), JSON.stringify(samples), { mode: 0o600, flag: 'wx' })
    } finally {
      await app.close()
    }
    // Fails where another start was faster: its vault is then opened, or is in use.
    await rename(staging, directory).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error
    })
  } finally {
    await rm(staging, { recursive: true, force: true })
  }
}

async function removeAbandoned(directory: string, beforeMs: number): Promise<void> {
  const beginning = `${DEMO_DIRECTORY}${STAGING}`
  for (const name of await readdir(dirname(directory))) {
    if (!name.startsWith(beginning) || name.length !== beginning.length + RANDOM_CHARACTERS) continue
    const path = join(dirname(directory), name)
    // Another start may have moved it to its place in between.
    const found = await stat(path).catch(() => undefined)
    if (found !== undefined && found.mtimeMs < beforeMs) await rm(path, { recursive: true, force: true })
  }
}

/** Validates the contents, because they are printed in commands to be pasted. */
function parseSamples(text: string): SampleApplications | undefined {
  const isSample = (value: unknown) => {
    const { id, key } = (value ?? {}) as Record<string, unknown>
    return /^[0-9a-f-]{36}$/.test(String(id)) && isKey(String(key), API_KEY)
  }
  try {
    const samples = JSON.parse(text) as Record<string, unknown>
    const known = SAMPLE_TYPES.filter((type) => isSample(samples[type]))
    return known.length === Object.keys(samples).length ? (samples as SampleApplications) : undefined
  } catch {
    return undefined
  }
}

async function fill(app: App): Promise<void> {
  const lines = (await readFile(findFixture('tokens.ndjson'), 'utf8')).split('\n')
  for (const line of lines.filter((each) => each.trim() !== ''))
    await performAsOwner(app, createToken, JSON.parse(line) as Record<string, unknown>)
  for (const token of TOKENS) await performAsOwner(app, createToken, token)
  await performAsOwner(app, linkTokens, { parent_id: 'customer-42', child_id: 'card-1' })
  const code = 'module.exports = async ({ args }) => ({ raw: { hello: args.name } })'
  const formula = await performAsOwner(app, createFormula, { name: 'greet', type: 'private', code })
  await performAsOwner(app, createReactor, { name: 'greet', formula })
  await performAsOwner(app, createProxy, { name: 'payments', destination_url: 'https://api.example.com/v1' })
  for (const email of ['ada@example.com', 'grace@example.com'])
    await performAsOwner(app, createInvitation, { email })
  const { data } = (await performAsOwner(app, readOutbox, {})) as List<OutboxMail>
  const link = data.find(({ to }) => to === 'ada@example.com')?.link
  await performAsOwner(app, acceptInvitationLink, { link, first_name: 'Ada', last_name: 'Lovelace' })
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
