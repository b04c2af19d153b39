import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { CofferError } from '../../../errors.js'
import type { CommandContext } from '../../context.js'

/** If a signal ends a command, shells report 128 plus the number of the signal as the exit code. */
const SIGNALLED = 128

/**
 * Runs a shell command until it ends or `signal` is aborted.
 * @throws CofferError `check_failed` if the exit code of the command is not 0. The error has this exit code.
 */
export function runLine(
  { env, cwd, signal }: Pick<CommandContext, 'env' | 'cwd' | 'signal'>,
  line: string,
  variables: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  // The environment names no vault, so that coffer commands in the line use the server.
  const own = { ...env, COFFER_VAULT: undefined, COFFER_STORE: undefined, ...variables }
  const child = spawn('/bin/sh', ['-c', line], { cwd, env: own, stdio: 'inherit' })
  signal.addEventListener('abort', () => child.kill(), { once: true })
  return new Promise((resolve, reject) => {
    const end = (how: string, exit: number) => {
      if (exit === 0 || signal.aborted) return resolve()
      reject(new CofferError('check_failed', `The command of --run ended with ${how}.`, { exit }))
    }
    child.once('error', ({ message }) => end(message, 1))
    child.once('close', (code, killedBy) =>
      end(code === null ? killedBy! : `exit code ${code}`, code ?? SIGNALLED + constants.signals[killedBy!]),
    )
  })
}
