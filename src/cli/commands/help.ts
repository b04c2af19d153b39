/** `coffer help`: prints the help of a command, or a topic. */
import { SETTINGS, type Setting } from '../../config.js'
import { ERRORS } from '../../errors.js'
import type { CommandContext } from '../context/context.js'
import { write } from '../output/terminal.js'

/** @throws CofferError `usage` for an unknown command or topic */
export async function printHelp(context: CommandContext, words: readonly string[]): Promise<void> {
  const { stdout } = context.terminal
  const topic = words.length === 1 ? describeTopic(words[0]!) : undefined
  await write(stdout, topic === undefined ? context.describeCommand(words) : `${topic}\n`)
}

const TOPICS: Readonly<Record<string, () => string>> = {
  expressions: () => EXPRESSIONS,
  'exit-codes': describeExitCodes,
  environment: describeEnvironment,
}

export const TOPIC_NAMES: readonly string[] = Object.keys(TOPICS)

export function describeTopic(name: string): string | undefined {
  return Object.hasOwn(TOPICS, name) ? TOPICS[name]!() : undefined
}

const EXIT_MEANINGS: Record<number, string> = {
  0: 'done',
  1: 'internal error, or a failure of the disk',
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
  return ['Exit codes, with their problem types:', '', ...rows].join('\n')
}

function describeEnvironment(): string {
  const rows = (Object.values(SETTINGS) as Setting[]).map(
    ({ flag, variable, description }) =>
      `  ${variable.padEnd(27)} ${flag.split(' ')[0]!.padEnd(21)} ${description}`,
  )
  const others = [
    ['NO_COLOR, FORCE_COLOR', 'disable or force colours'],
    ['XDG_CONFIG_HOME', 'the parent of the directory coffer/ with the key files; default ~/.config'],
  ].map(([name, meaning]) => `  ${name!.padEnd(49)} ${meaning}`)
  return ['A flag overrides its variable:', '', ...rows, '', 'Other variables:', '', ...others].join('\n')
}

const EXPRESSIONS = `Masks, ids, fingerprints and search indexes are Liquid expressions over the token's data:

  {{ data }}  {{ data.number | reveal_last: 4 }}  {{ data.name | slice: 0 }}. {{ data.last }}

An expression that is the whole string yields the value with its JSON type; inside text it yields text.
Tags ({% … %}) are refused. Filters: the standard Liquid filters that read neither the clock nor files, and:

  reveal_last: count, char = X             masks all but the last count characters, and no hyphens
  reveal: first, last, char = X, keep      masks the middle, except the characters in keep
  last4                                    the last four characters
  stringify                                canonical JSON; a string is unchanged
  json: path                               the single value that a JSONPath (RFC 9535) selects
  pad_left: length, char                   pads to a length of at most 10,000 characters
  pad_right: length, char
  to_string  to_number  to_boolean         casts
  card_mask: bin, last4, char = X, keep    a card number masked; bin and last4 (true or false) show these digits
  card_bin: separator                      the BIN: the first 8 digits, 6 of a number with fewer than 16
  card_exp: format                         of the data of a card, such as 'MM/YY' or 'YYYY-MM'
  json_stringify                           JSON, names in their order; must be the last
  hmac: algorithm = sha-256, key           of text; to_base64 or to_base16 must follow; also sha-1 and sha-512
  to_base64  to_base16                     of text, or of an hmac
  alias_preserve_format: first, last       in ids only: random letters for letters, digits for digits
  alias_preserve_length: first, last       in ids only: random letters and digits
  alias_card: bin, last4                   in ids only: random digits; spaces and hyphens stay

A comma before the first filter is read as "|". At most 400 characters each. Fingerprint expressions can use
metadata as well as data.

In token detokenize and in the arguments of a reactor, expressions name tokens instead of data:

  {{ my-token }}  {{ my-token | json: '$.number' | card_bin }}  {{ token: my-token | json: '$.metadata.name' }}

The first two use the data of the token, the third the whole token.`
