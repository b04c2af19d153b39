/** Disables core dumps, which would write keys in memory to the disk. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** Sets the core dump limit of this process, whose id is `pid`, to 0. Resolves to whether it is 0. */
export async function limitCore(pid: number): Promise<boolean> {
  if ((await run('prlimit', ['--pid', String(pid), '--core=0'])) !== undefined) return true
  // Without util-linux only the parent can set the limit; a child inherits ours.
  return (await run('/bin/sh', ['-c', 'ulimit -c']))?.trim() === '0'
}

export const CORE_DANGER =
  'A crash of this server may write its memory, including keys, to a core dump. Before starting it, run: ulimit -c 0'

/** The standard output of a program; undefined if it fails or does not exist. */
async function run(file: string, words: readonly string[]): Promise<string | undefined> {
  try {
    return (await promisify(execFile)(file, words)).stdout
  } catch {
    return undefined
  }
}
