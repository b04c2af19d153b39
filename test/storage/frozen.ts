/**
 * Frozen vaults: one directory of `fixtures/vaults` for every format there ever was, with what opens it beside it. Makes
 * a copy that can be worked on, and reads it through the command line; it does not know what should come out.
 */
import { chmodSync, cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { main } from '../../src/cli/main.js'
import { type Outcome, type Run, runProcess } from '../cli/fake-process.js'

export const FROZEN_VAULTS = fileURLToPath(new URL('../../../fixtures/vaults/', import.meta.url))

/** When frozen vaults are read: after the one token that expires has, and long before the other does. */
export const READING_TIME = Date.UTC(2026, 11, 1)

/** What lies in the directory of a frozen vault. */
export const VAULT = 'vault'
export const KEY_FILE = 'vault.key'
export const PASSPHRASE_FILE = 'passphrase.txt'
/** Of the application, which may read tokens. */
export const API_KEY_FILE = 'api-key.txt'
export const EXPECTED_FILE = 'expected.json'

/** The tenants of every frozen vault. */
export const TENANTS = ['first', 'second'] as const

export interface Place {
  directory: string
  run(words: readonly string[], options?: Omit<Run, 'words'>): Promise<Outcome>
  /** The same, for what must succeed: its standard output as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for
  json(words: readonly string[], options?: Omit<Run, 'words'>): Promise<any>
}

/** Commands in `directory`, on the vault in it, with its key file unless `opener` says otherwise. */
export function placeIn(
  directory: string,
  clock: () => number,
  opener: Record<string, string> = { COFFER_KEY_FILE: join(directory, KEY_FILE) },
): Place {
  const env = { HOME: directory, COFFER_VAULT: join(directory, VAULT), NO_COLOR: '1', ...opener }
  const run: Place['run'] = (words, options = {}) =>
    runProcess(main, { clock, ...options, words, cwd: directory, env: { ...env, ...options.env } })
  return {
    directory,
    run,
    json: async (words, options) => {
      const { code, stdout, stderr } = await run(words, options)
      if (code !== 0) throw new Error(`coffer ${words.join(' ')} ended with ${code}: ${stderr}`)
      return stdout === '' ? undefined : JSON.parse(stdout)
    },
  }
}

/** A temporary copy with the modes that a vault must have, which git does not keep. */
export function copyFrozen(source: string): { directory: string; remove(): void } {
  const directory = mkdtempSync(join(tmpdir(), 'coffer-frozen-'))
  cpSync(source, directory, { recursive: true })
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o700 : 0o600)
  }
  return { directory, remove: () => rmSync(directory, { recursive: true, force: true }) }
}

/** Tokens without what answers show since a vault was frozen; it is derived from their data. */
export function withoutDerived(tokens: readonly Record<string, unknown>[]) {
  return tokens.map(({ card, bank, ...token }) => token)
}

/** Everything that the command line shows of a vault. The order counts: to list tokens is logged. */
export async function readEverything({ json }: Place) {
  // Where it lies and what this machine gives are no part of the vault.
  const { directory: _, reactor_sandbox: __, ...status } = await json(['vault', 'status'])
  const tenants: Record<string, unknown> = {}
  for (const name of TENANTS) {
    const inTenant = async (...words: string[]) => (await json([...words, '--all', '--tenant', name])).data
    tenants[name] = {
      logs: await inTenant('log', 'list'),
      tenant: await json(['tenant', 'get', '--tenant', name]),
      tokens: withoutDerived(await inTenant('token', 'list', '--reveal')),
      applications: await inTenant('app', 'list'),
      members: (await json(['member', 'list', '--tenant', name])).data,
      invitations: await inTenant('invite', 'list'),
      children: withoutDerived(await inTenant('token', 'children', 'customer-1')),
    }
  }
  return { status, tenants }
}
