import { readFileSync } from 'node:fs'
import { ERRORS } from '../../../errors.js'
import { ALL_SETTINGS } from '../../../global-flags.js'
import { TOPIC_NAMES } from '../../context.js'
import { findFixture } from '../fixtures.js'

export function describeTopic(name: string): string | undefined {
  if (name === 'exit-codes') return describeExitCodes()
  if (name === 'environment') return describeEnvironment()
  const isTopic = TOPIC_NAMES.some((each) => each === name)
  return isTopic ? readFileSync(findFixture(`help/${name}.txt`), 'utf8').trimEnd() : undefined
}

const EXIT_MEANINGS: Record<number, string> = {
  0: 'done',
  1: 'internal error, failure of the disk, or failed check of coffer doctor',
  2: 'usage or validation',
  3: 'not found',
  4: 'not permitted, or not authenticated',
  5: 'conflict with existing data',
  6: 'vault locked, missing, exposed, of another format, or wrong passphrase',
  7: 'vault damaged',
  8: 'reactor failed',
  9: 'server unreachable, busy, or limiting the rate',
  130: 'interrupted',
}

function describeExitCodes(): string {
  const rows = Object.entries(EXIT_MEANINGS).map(([exit, meaning]) => {
    const codes = Object.entries(ERRORS).filter(([, entry]) => entry.exit === Number(exit))
    const names =
      codes.length === 0 ? '' : ` (${codes.map(([code]) => code.replaceAll('_', '-')).join(', ')})`
    return `  ${exit.padStart(3)}  ${meaning}${names}`
  })
  return `${['Exit codes, with their problem types:', '', ...rows].join('\n')}

If the output is JSON, the error is JSON too, on standard error. Examples:
  $ coffer token get nobody || test $? = 3
  $ coffer token get nobody 2>&1 >/dev/null | grep -o urn:coffer:problem:not-found`
}

function describeEnvironment(): string {
  const rows = ALL_SETTINGS.map(
    ({ word, variable, description }) => `  ${variable.padEnd(27)} ${word.padEnd(22)} ${description}`,
  )
  return `A flag overrides its variable:

${rows.join('\n')}

Other variables:

  NO_COLOR                    disable colours
  XDG_CONFIG_HOME             the parent of the directory coffer/ with the key files; default ~/.config

Examples:
  $ COFFER_OUTPUT=ndjson COFFER_FIELDS=id,type coffer token list
  $ COFFER_VAULT=.coffer-demo coffer vault status`
}
