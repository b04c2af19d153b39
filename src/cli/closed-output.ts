/** Finds out whether standard output was closed when the program was started, as in `coffer token list >&-`. */
import { readFileSync, readlinkSync } from 'node:fs'
import { Writable } from 'node:stream'
import type { ProcessLike } from './context/context.js'
import type { OutputStream } from './output/terminal.js'

const SHELL = /^-?(?:(?:[bd]?a|z|k|mk|fi)?sh|busybox)$/

/**
 * Standard output, or where it is closed a stream on which every write fails, as it would have without Node: that puts
 * /dev/null, open for reading and writing, in the place of a closed one. Programs that want no output hand over the
 * same, shells do not; so it was closed when a shell started us whose own output is another. Linux tells; elsewhere
 * what is printed is lost.
 */
export function openOutput({ stdout, ppid }: Pick<ProcessLike, 'stdout' | 'ppid'>): OutputStream {
  if (ppid === undefined || stdout.isTTY || !isNowhere('self') || isNowhere(ppid)) return stdout
  if (!SHELL.test(read(`/proc/${ppid}/comm`).trim())) return stdout
  return new Writable({
    write: (_chunk, _encoding, done) => done(Object.assign(new Error('closed'), { code: 'EBADF' })),
  })
}

function isNowhere(pid: number | 'self'): boolean {
  const isNull = attempt(() => readlinkSync(`/proc/${pid}/fd/1`)) === '/dev/null'
  return isNull && /^flags:\s+\d*2$/m.test(read(`/proc/${pid}/fdinfo/1`))
}

function read(path: string): string {
  return attempt(() => readFileSync(path, 'utf8'))
}

/** What may not be looked at tells nothing. */
function attempt(look: () => string): string {
  try {
    return look()
  } catch {
    return ''
  }
}
