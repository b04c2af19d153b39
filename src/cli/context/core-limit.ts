/** Keeps a crash from writing what is in memory, keys included, to the disk. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** Sets the limit of core dumps of the process `pid`, which is this one, to 0. Resolves to whether it is 0 now. */
export async function limitCore(pid: number): Promise<boolean> {
  if ((await run('prlimit', ['--pid', String(pid), '--core=0'])) !== undefined) return true
  // Without util-linux only who starts us can set it; a child's limit is ours.
  return (await run('/bin/sh', ['-c', 'ulimit -c']))?.trim() === '0'
}

export const CORE_DANGER =
  'A crash of this server may leave its memory, keys included, in a core dump. Start it after: ulimit -c 0'

/** Standard output; undefined when it failed or is not there. */
async function run(file: string, words: readonly string[]): Promise<string | undefined> {
  try {
    return (await promisify(execFile)(file, words)).stdout
  } catch {
    return undefined
  }
}
