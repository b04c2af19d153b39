import type { Environment } from '../../config.js'
import { isTerminal, type OutputStream, write } from './terminal.js'

/** Prints a long text through `PAGER` on a terminal; `less` ends by itself if the text fits the screen. */
export async function page(stdout: OutputStream, env: Environment, text: string) {
  const { PAGER } = env
  if (PAGER && isTerminal(stdout)) {
    const { spawnSync } = await import('node:child_process')
    const options = { input: text, stdio: ['pipe', 'inherit', 'inherit'], env: { LESS: 'FRX', ...env } }
    const { status } = spawnSync('/bin/sh', ['-c', PAGER], options as never)
    // The shell found it, and what it did is for the person who chose it.
    if (status !== null && status < 126) return
  }
  await write(stdout, text)
}
