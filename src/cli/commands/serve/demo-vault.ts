/**
 * The vault of `coffer serve --demo`: sample tokens in `.coffer-demo`, with its key file and API keys in the same
 * directory.
 */
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { isApiKey } from '../../../domain/application.js'
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
import type { CommandContext } from '../../context/context.js'
import { DEMO_DIRECTORY } from '../../context/credentials.js'
import { findFixture } from '../../context/fixtures.js'

export interface DemoVault {
  app: App
  directory: string
  /** With their keys. */
  samples: SampleApplications
}

/** Opens the demo vault, or creates it with sample data. @throws CofferError like `openVault` */
export async function openDemoVault(
  { cwd, pid, clock }: CommandContext,
  notice: (text: string) => void,
): Promise<DemoVault> {
  const directory = resolve(cwd, DEMO_DIRECTORY)
  const keyFile = join(directory, 'vault.key')
  const samplesFile = join(directory, 'applications.json')
  const place: VaultLocation = { directory: join(directory, 'vault'), pid, clock, notice, role: 'server' }
  if (existsSync(samplesFile)) {
    const app = await openVault(place, async () => ({
      kind: 'key-file',
      text: await readFile(keyFile, 'utf8'),
    }))
    const samples = parseSamples(await readFile(samplesFile, 'utf8'))
    if (samples !== undefined) return { app, directory, samples }
    await app.close()
    throw new CofferError('vault_damaged', `${samplesFile} was changed. Remove ${directory}.`)
  }
  if (existsSync(keyFile))
    throw new CofferError('vault_damaged', `${directory} is incomplete. Remove it and start again.`)
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const save = (_: string, text: string) => writeFile(keyFile, text, { mode: 0o600, flag: 'wx' })
  const app = await createVault(place, 'demo', { kind: 'key-file', save })
  try {
    const samples = await ensureSampleApplications(app)
    await fill(app)
    await writeFile(samplesFile, JSON.stringify(samples), { mode: 0o600, flag: 'wx' })
    return { app, directory, samples }
  } catch (error) {
    await app.close()
    throw error
  }
}

/** Validates the contents, because they are printed in commands to be pasted. */
function parseSamples(text: string): SampleApplications | undefined {
  const isSample = (value: unknown) => {
    const { id, key } = (value ?? {}) as Record<string, unknown>
    return /^[0-9a-f-]{36}$/.test(String(id)) && isApiKey(String(key))
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
