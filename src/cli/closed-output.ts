/** Detects that standard output was closed when the program was started, as in `coffer token list >&-`. */
import { readFileSync, readlinkSync } from 'node:fs'
import type { ProcessLike } from './context/context.js'
import type { OutputStream } from './output/terminal.js'

const SHELL = /^-?(?:(?:[bd]?a|z|k|mk|fi)?sh|busybox)$/

/**
 * Standard output; if it was closed, a stream on which every write fails. Node replaces a closed descriptor by /dev/null,
 * open for reading and writing. Other programs pass the same to discard output, shells do not: so it was closed if the
 * parent is a shell whose own output is not /dev/null. Works on Linux only; elsewhere the output is lost.
 */
export function openOutput({ stdout, ppid }: Pick<ProcessLike, 'stdout' | 'ppid'>): OutputStream {
  if (ppid === undefined || stdout.isTTY || !isNowhere('self') || isNowhere(ppid)) return stdout
  if (!SHELL.test(read(`/proc/${ppid}/comm`).trim())) return stdout
  const write = (_chunk: unknown, done?: (error: Error) => void) =>
    done?.(Object.assign(new Error('closed'), { code: 'EBADF' }))
  return Object.create(stdout, { write: { value: write } })
}

function isNowhere(pid: number | 'self'): boolean {
  const isNull = attempt(() => readlinkSync(`/proc/${pid}/fd/1`)) === '/dev/null'
  return isNull && /^flags:\s+\d*2$/m.test(read(`/proc/${pid}/fdinfo/1`))
}

function read(path: string): string {
  return attempt(() => readFileSync(path, 'utf8'))
}

function attempt(look: () => string): string {
  try {
    return look()
  } catch {
    return ''
  }
}
