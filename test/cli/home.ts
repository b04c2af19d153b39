/**
 * A temporary home for tests of the command line: a directory, its environment variables, and the program that runs in
 * it.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { main } from '../../src/cli/main.js'
import type { ContainerRule } from '../../src/domain/access/access.js'
import { type Outcome, type Run, runProcess } from './fake-process.js'

export interface Home {
  /** The working directory of commands. The vault is in the folder `.coffer` of this directory. */
  place: string
  env: Record<string, string>
  /** Runs `coffer` with these words. A string is split at its spaces. */
  run(line: string | readonly string[], options?: Omit<Run, 'words'>): Promise<Outcome>
  /** Runs a command that must succeed, and returns its standard output as JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for
  json(line: string | readonly string[], options?: Omit<Run, 'words'>): Promise<any>
  /** Creates a token. Without other properties, the token has the type `token` and the data `x`. */
  // biome-ignore lint/suspicious/noExplicitAny: as above
  createToken(draft?: object, options?: Omit<Run, 'words'>): Promise<any>
  /** Creates an application. The default type is private. */
  createApp(draft: object): Promise<{ id: string; key: string }>
  /** Writes a file into the home and returns its path. */
  write(name: string, content: string | Uint8Array, mode?: number): string
}

/** Creates an empty home. The home is removed when the test ends. */
export function createHome(t: Test): Home {
  const place = mkdtempSync(join(tmpdir(), 'coffer-home-'))
  t.teardown(() => rmSync(place, { recursive: true, force: true }))
  const env = { HOME: place, XDG_CONFIG_HOME: join(place, 'config'), NO_COLOR: '1' }
  const run: Home['run'] = async (line, options = {}) => {
    const words = typeof line === 'string' ? line.split(' ') : line
    return runProcess(main, { ...options, words, cwd: options.cwd ?? place, env: { ...env, ...options.env } })
  }
  const json: Home['json'] = async (line, options) => {
    const { code, stdout, stderr } = await run(line, options)
    if (code !== 0) throw new Error(`coffer ${line} ended with ${code}: ${stderr}`)
    return stdout === '' ? undefined : JSON.parse(stdout)
  }
  return {
    ...{ place, env, run, json },
    createToken: (draft = {}, options = {}) =>
      json('token create', { ...options, stdin: JSON.stringify({ type: 'token', data: 'x', ...draft }) }),
    createApp: (draft) =>
      json('app create', { stdin: JSON.stringify({ name: 'app', type: 'private', ...draft }) }),
    write: (name, content, mode = 0o600) => {
      const path = join(place, name)
      writeFileSync(path, content, { mode })
      return path
    },
  }
}

/** Creates a home with a vault that opens with its key file. */
export async function createVaultHome(t: Test): Promise<Home> {
  const home = createHome(t)
  await home.json(['init'])
  return home
}

export const testHome = (title: string, run: (t: Test, home: Home) => Promise<void>) =>
  t.test(title, async (t) => run(t, createHome(t)))

export const testVault = (title: string, run: (t: Test, home: Home) => Promise<void>) =>
  t.test(title, async (t) => run(t, await createVaultHome(t)))

/** An access rule, by default for all containers. */
export const ruleOf = (
  transform: ContainerRule['transform'],
  more: Partial<ContainerRule> = {},
): ContainerRule => ({
  ...{ priority: 1, container: '/', transform, permissions: ['token:read'] },
  ...more,
})
