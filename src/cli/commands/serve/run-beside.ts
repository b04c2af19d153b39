import { spawn } from 'node:child_process'
import { CofferError } from '../../../errors.js'
import type { CommandContext } from '../../context.js'

/** Runs a line of the shell until it ends or `signal` is aborted. @throws CofferError `check_failed` unless it ends with 0 */
export function runLine(
  { env, cwd, signal }: Pick<CommandContext, 'env' | 'cwd' | 'signal'>,
  line: string,
  variables: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  // Commands in the line reach the server, whatever vault this command has found in its environment.
  const own = { ...env, COFFER_VAULT: undefined, COFFER_STORE: undefined, ...variables }
  const child = spawn('/bin/sh', ['-c', line], { cwd, env: own, stdio: 'inherit' })
  signal.addEventListener('abort', () => child.kill(), { once: true })
  return new Promise((resolve, reject) => {
    const end = (how: number | string | null) => {
      if (how === 0 || signal.aborted) return resolve()
      reject(new CofferError('check_failed', `The command of --run ended with ${how}.`))
    }
    child.once('error', ({ message }) => end(message))
    child.once('close', (code, killedBy) => end(code ?? killedBy))
  })
}
