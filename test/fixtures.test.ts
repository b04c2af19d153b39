import { readdir, readFile } from 'node:fs/promises'
import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { computeHmac } from '../src/crypto/native.js'
import { Budget } from '../src/domain/expression/budget.js'
import { Expressions } from '../src/domain/expression/expression.js'
import { prepareToken } from '../src/domain/token/token.js'
import { TOKEN_TYPE_NAMES } from '../src/domain/token/token-types.js'

const directory = new URL('../../fixtures/', import.meta.url)
const readText = (name: string) => readFile(new URL(name, directory), 'utf8')
const readLines = async (name: string) => {
  const text = await readText(name)
  t.ok(text.endsWith('\n') && !text.includes('\r'), `each line of ${name} ends with a line feed`)
  return text
    .slice(0, -1)
    .split('\n')
    .map((line) => JSON.parse(line))
}

/**
 * This file implements the checksums itself. If this file used the checksums of the program, an error in them could
 * hide an error in the fixtures.
 */
function isLuhn(digits: string): boolean {
  const sum = [...digits].reverse().reduce((total, digit, index) => {
    const value = Number(digit) * (1 + (index % 2))
    return total + Math.floor(value / 10) + (value % 10)
  }, 0)
  return sum % 10 === 0
}

function isAba(digits: string): boolean {
  const sum = [...digits].reduce((total, digit, index) => total + Number(digit) * [3, 7, 1][index % 3]!, 0)
  return sum % 10 === 0 && Number(digits) > 0
}

const isUnique = (values: readonly unknown[]) => new Set(values).size === values.length

/** For each network, the prefixes and lengths of its numbers. */
const NETWORKS: Record<string, RegExp> = {
  visa: /^4(\d{12}|\d{15}|\d{18})$/,
  mastercard: /^(5[1-5]\d{14}|2(22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12})$/,
  'american express': /^3[47]\d{13}$/,
  discover: /^(6011|64[4-9]\d|65\d\d)\d{12}$/,
  'diners club': /^(3(0[0-5]|[689]\d)\d{11}|3(0[0-5]|[689]\d)\d{13})$/,
  jcb: /^(35(2[89]|[3-8]\d)|3088)\d{12}$/,
  unionpay: /^62\d{14,17}$/,
  maestro: /^(6759|6304|6771)\d{12}$/,
  elo: /^5066\d{12}$/,
  hipercard: /^6062\d{12}$/,
  'cartes bancaires': /^[45]\d{15}$/,
  dinacard: /^6555\d{12}$/,
}

/** Card numbers that have no brand. */
const UNKNOWN = /^(122000000000003|5019717010103742)$/

const PROMISED =
  `4242424242424242 4000056655665556 5555555555554444 2223003122003222 5200828282828210 5105105105105100
  378282246310005 371449635398431 6011111111111117 6011000990139424 3056930009020004 36227206271667 3566002020360505`.split(
    /\s+/,
  )

t.test(
  'the cards in the fixture are unique, and each number has the prefix and length of its network',
  async (t) => {
    const { cards } = JSON.parse(await readText('cards.json'))
    const numbers: string[] = cards.map(({ number }: { number: string }) => number)
    t.ok(cards.length >= 50)
    t.ok(isUnique(numbers))
    for (const number of PROMISED) t.ok(numbers.includes(number), number)
    for (const card of cards) {
      const { tokens, threeds, updater, network_tokens, ...rest } = card
      t.equal(Object.keys(rest).join(), 'brand,number,cvc_length,expiration_month,expiration_year')
      const isExpected = tokens?.fails_checksum !== true
      t.equal(
        isLuhn(card.number),
        isExpected,
        `${card.number} passes Luhn's check, unless tokens make an exception`,
      )
      t.match(
        card.number,
        card.brand === null ? UNKNOWN : (NETWORKS[card.brand] ?? /a known brand/),
        `${card.number} is a number of ${card.brand}`,
      )
      t.equal(card.cvc_length, card.brand === 'american express' ? 4 : 3)
      t.ok(card.expiration_month >= 1 && card.expiration_month <= 12)
      t.ok(card.expiration_year >= 2031 && card.expiration_year <= 2039)
    }
  },
)

t.test(
  'the routing numbers in the fixture are unique and valid, and include all Federal Reserve Banks',
  async (t) => {
    const { routing_numbers: rows } = JSON.parse(await readText('routing-numbers.json'))
    t.ok(rows.length >= 25)
    t.ok(isUnique(rows.map(({ routing_number }: { routing_number: string }) => routing_number)))
    for (const row of rows) {
      t.match(row.routing_number, /^\d{9}$/)
      t.ok(isAba(row.routing_number), row.routing_number)
      t.ok(row.name.length > 3)
    }
    const reserve = rows.filter(({ name }: { name: string }) => name.startsWith('Federal Reserve Bank of '))
    // All routing numbers of a Federal Reserve district begin with the same two digits.
    const districts = reserve.map(({ routing_number }: { routing_number: string }) =>
      routing_number.slice(0, 2),
    )
    t.equal(districts.join(), '01,02,03,04,05,06,07,08,09,10,11,12')
  },
)

t.test(
  'the people in the fixture do not exist: their addresses, numbers and mail addresses were never assigned',
  async (t) => {
    const people = await readLines('people.ndjson')
    t.ok(people.length >= 200)
    for (const key of ['name', 'email', 'phone', 'social_security_number']) {
      t.ok(isUnique(people.map((person) => person[key])), `${key} is unique`)
    }
    for (const person of people) {
      t.match(person.email, /^[a-z]+\.[a-z]+@example\.(com|org|net)$/)
      t.match(person.phone, /^\(\d{3}\) 555-01\d\d$/)
      t.match(person.date_of_birth, /^(19[4-9]\d|200[0-5])-(0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])$/)
      t.match(person.address.postal_code, /^00[1-4]\d\d$/)
      // Numbers with the areas 000 and 666 are never issued. The numbers 987-65-4320 to 4329 are reserved for
      // advertisements.
      t.match(person.social_security_number, /^((000|666)-\d\d-\d{4}|987-65-432\d)$/)
    }
    const isHan = people.some(({ name }) => /\p{Script=Han}/u.test(name))
    t.ok(isHan, 'there are names in more than one script')
  },
)

t.test(
  'every token of tokens.ndjson can be created, and the file has each type and each attribute of tokens',
  async (t) => {
    const bodies = await readLines('tokens.ndjson')
    t.ok(bodies.length >= 100)
    const expressions = new Expressions({ bytes: (count) => new Uint8Array(count) }, computeHmac)
    const now = Date.UTC(2026, 10, 20)
    for (const body of bodies)
      await t.resolves(prepareToken(body, { expressions, now, budget: new Budget() }), body.type)
    t.same(new Set(bodies.map(({ type }) => type)), new Set(TOKEN_TYPE_NAMES))
    const given = new Set(bodies.flatMap((body) => Object.keys(body)))
    const attributes = ['type', 'data', 'id', 'mask', 'containers', 'metadata', 'search_indexes']
    t.same(given, new Set([...attributes, 'fingerprint_expression', 'deduplicate_token', 'expires_at']))
    t.ok(
      isUnique(bodies.map(({ type, data }) => JSON.stringify([type, data]))),
      'no two tokens are duplicates',
    )
    const ids = bodies.flatMap(({ id }) => (id === undefined || id.includes('{{') ? [] : [id]))
    t.ok(ids.length > 0 && isUnique(ids))
  },
)

t.test('every case of an operation in the fixtures matches the schema of cases', async (t) => {
  const validate = new Ajv2020().compile(JSON.parse(await readText('operations/case.schema.json')))
  const files = (await readdir(new URL('operations/', directory))).filter((name) =>
    /^[a-z-]+\.json$/.test(name),
  )
  t.ok(files.length >= 20)
  for (const file of files) {
    const isValid = validate(JSON.parse(await readText(`operations/${file}`)))
    t.ok(isValid, `${file} ${JSON.stringify(validate.errors)}`)
  }
  const typo = [{ title: 'a', steps: [{ operation: 'token get', expects: { status: 200 } }] }]
  t.notOk(validate(typo), 'the schema refuses a misspelled property')
})
