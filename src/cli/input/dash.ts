/**
 * The file name `-` means standard input or output, or is refused. No command reads or creates a file with the name
 * `-`.
 */
import { usage } from '../../errors.js'

const READ_STDIN: readonly string[] = ['--file', '--from', '--seed', '--tls-cert', '--tls-key']
const ADVICE: Readonly<Record<string, string>> = {
  '--results': 'Standard output has the counts of the import. Give the name of a file.',
  '--resume': 'The file is read and written again. Give the name of a file.',
}
const GIVE_NAME = 'Give the name of a file.'

/** `flags` are in commander's syntax. `given` returns the value of a flag. @throws CofferError `usage` */
export function refuseDashes(flags: readonly string[], given: (flag: string) => unknown): void {
  for (const flag of flags) {
    const [long = ''] = /--[a-z-]+/.exec(flag) ?? []
    const isPath = /<(?:file|directory)>/.test(flag) && !READ_STDIN.includes(long)
    if (isPath && [given(flag)].flat().includes('-')) throw dashError(long, ADVICE[long])
  }
}

export function dashError(flag: string, advice = GIVE_NAME) {
  return usage(`${flag} cannot be -, which stands for standard input and output. ${advice}`)
}
