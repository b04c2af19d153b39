/**
 * The file that `coffer unlock` leaves for commands while it keeps a vault open. It has a secret of this session, by
 * which they and that process recognize each other. The system removes its directory when the user logs out.
 */
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { CofferError } from '../../errors.js'
import { identifyVault } from '../../vault/open.js'
import type { CommandContext } from '../context.js'

interface Session {
  secret: Uint8Array
  untilMs: number
}

const VAULT_ID = /^[\da-f]{32}$/

/** The path of the file of a vault's session, whether there is one or not. */
export function sessionPath({ config, env }: CommandContext, vault: string): string {
  return join(env.XDG_RUNTIME_DIR || config.directory, 'coffer-unlocked', vault)
}

/** @throws CofferError `storage_failed` */
export function writeSession(path: string, { secret, untilMs }: Session): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    // Removes the file of a killed process, and a link, which would redirect the write.
    rmSync(path, { force: true })
    const text = `${untilMs} ${Buffer.from(secret).toString('hex')}\n`
    writeFileSync(path, text, { mode: 0o600, flag: 'wx' })
  } catch (cause) {
    throw new CofferError('storage_failed', `The session could not be written to ${path}.`, { cause })
  }
}

/** The session of the vault in this directory, if there is one. @throws CofferError `vault_exposed` if others may read it */
export async function readSession(context: CommandContext, vault: string) {
  if (context.config.store !== undefined || !existsSync(sessionPath(context, ''))) return undefined
  const id = await identifyVault({ directory: vault, pid: context.pid, notice: () => {} })
  const path = sessionPath(context, id)
  // The header has not been authenticated: its id could be a path.
  if (!VAULT_ID.test(id) || !existsSync(path)) return undefined
  const [, until, secret = ''] =
    /^(\d{13}) ([\da-f]{64})$/.exec(await context.input.readSecretFile(path, 'the session')) ?? []
  if (until === undefined) return undefined
  return { path, untilMs: Number(until), secret: Buffer.from(secret, 'hex') }
}
