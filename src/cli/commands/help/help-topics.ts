import { ERRORS } from '../../../errors.js'
import { ALL_SETTINGS } from '../../../global-flags.js'
import { TOPIC_NAMES } from '../../context.js'

const TOPICS: Readonly<Record<(typeof TOPIC_NAMES)[number], () => string>> = {
  'access-rules': () => ACCESS_RULES,
  search: () => SEARCH,
  expressions: () => EXPRESSIONS,
  'exit-codes': describeExitCodes,
  environment: describeEnvironment,
}

export function describeTopic(name: string): string | undefined {
  const known = TOPIC_NAMES.find((each) => each === name)
  return known === undefined ? undefined : TOPICS[known]()
}

const EXIT_MEANINGS: Record<number, string> = {
  0: 'done',
  1: 'internal error, a failure of the disk, or of a check of coffer doctor',
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

Where the output is JSON, so is the error, on standard error. Examples:
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

The first two use the data of the token, the third the whole token.

Examples:
  $ coffer token create --type token --data '{"iban":"GB33BUKB20201555555555"}' --mask '{"iban":"{{ data.iban | reveal_last: 4 }}"}'
  $ echo '{"to":"Dear {{ ada | json: \\"$.name\\" }}"}' | coffer token detokenize --reveal`

const ACCESS_RULES = `An application has permissions on all containers, or rules that say what it may do where. A rule is JSON:

  {"priority":1,"container":"/pci/","transform":"mask","permissions":["token:read"]}

Of the rules that grant a permission on a container, or on one above it, the one with the lowest priority number
decides. No rule, no permission. A token in several containers takes all of them, and the strictest transform.

  transform  redact  the answer has no data
             mask    the data appears as the mask of the token shows it
             reveal  the data appears in the clear

A rule may have conditions instead of a container; coffer app create --help says how. The owner of the vault needs no
rule, and sees data masked unless --reveal is given. --explain says what a command would answer, and which rule decides.

A request with deduplicate_token tells whether equal data is stored, even to a caller who may not read that token: the
answer is the stored token without its data. With the setting deduplicate.reveals_existing false, tokens that the caller
may not read do not count, and a new token is made.

Examples:
  $ coffer app permissions
  $ coffer app create --name support --type private --rule '{"priority":1,"container":"/pci/","transform":"mask","permissions":["token:read"]}'
  $ coffer token get card-1 --explain-as 'starter private'`

const SEARCH = `A query has terms field:value, joined by AND, OR and NOT (also ! and -), with parentheses. Quote values with spaces.

  id  type  fingerprint  created_by  modified_by   equal to the value
  data               equal to a value of a search index, whatever the case
  metadata.<key>     equal to the value, whatever the case
  container          equal; a trailing * matches what follows: container:/pci/*
  created_at         a date, or a range: [2030-01-01 TO 2030-02-01], {2030-01-01 TO *}; [ ] include the ends
  modified_at        the same; a date without a time is the whole day, in UTC

Data is found through search indexes only: expressions of the token, such as {{ data.number | last4 }}. With the setting
search.masked_data false, data and fingerprint match only tokens whose data you may see in the clear.

Examples:
  $ coffer token search 'type:card AND metadata.customer:42'
  $ coffer token search 'container:/pci/* AND NOT created_at:[2020-01-01 TO 2020-12-31]' --all -o id
  $ coffer token create --type token --data 4111 --search-index '{{ data }}' --quiet && coffer token search data:4111`
