/**
 * Compares the creation of tokens from encrypted data with the creation from plaintext, by an operation in memory.
 * Argument: rounds.
 */
import { openTestVault } from '../src/index.js'
import { encryptLikePhones } from '../test/support/encrypt.js'
import { measureInTurn, printTimes, timeCpu } from './figures.js'

const rounds = Number(process.argv[2] ?? 15)
const RUNS = 300
const IN_A_DOCUMENT = 100
const data = { number: '4242424242424242', expiration_month: 12, expiration_year: 2040 }

const vault = await openTestVault()
const key = await vault.ask('key create')
const create = (input: object) => () => vault.ask('token create', { type: 'card', ...input } as never)
const tokenize = (input: object) => () =>
  vault.ask('token tokenize', {
    payload: Array.from({ length: IN_A_DOCUMENT }, () => ({ type: 'card', ...input })),
  })
const encrypted = encryptLikePhones(data, key)
const keyless = encryptLikePhones(data, key, { header: { kid: undefined } })
const measured = await measureInTurn(rounds, [
  { name: 'data', measure: () => timeCpu(RUNS, create({ data })) },
  { name: 'encrypted', measure: () => timeCpu(RUNS, create({ encrypted })) },
  { name: 'encrypted, without kid, 1 key', measure: () => timeCpu(RUNS, create({ encrypted: keyless })) },
])
printTimes('A token of a card', 'µs CPU', measured)
const documents = await measureInTurn(rounds, [
  { name: 'data', measure: () => timeCpu(RUNS / IN_A_DOCUMENT, tokenize({ data })) },
  { name: 'encrypted', measure: () => timeCpu(RUNS / IN_A_DOCUMENT, tokenize({ encrypted })) },
])
printTimes(`A document of ${IN_A_DOCUMENT} cards`, 'µs CPU', documents)
await vault.stop()
