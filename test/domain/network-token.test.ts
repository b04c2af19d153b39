import t from 'tap'
import { askNetwork } from '../../src/domain/network-token/networks.js'
import { deriveExpiry, deriveNumber, derivePar, maskNumber } from '../../src/domain/network-token/number.js'
import { explainRefusal } from '../../src/domain/network-token/refusals.js'
import { brandOf } from '../../src/domain/token/card-number.js'
import { isLuhnValid } from '../../src/domain/token/luhn.js'
import { NETWORK_TOKEN_CARDS } from '../support/published-cards.js'

/** Base58 texts as long as a digest. */
const DIGESTS = ['1', '2', 'z', 'CC2XvyoohnqecEq4r3FtXv6MdCx4TbaW1UUTdCCN5MNL'].map((text) =>
  text.padStart(44, text),
)

t.test(
  'the number of a network token has the brand and the length of the card number, but is a different number',
  async (t) => {
    for (const card of [
      '4222222222222',
      '4111111111111111',
      '5105105105105100',
      '2223003122003222',
      '378282246310005',
    ])
      for (const digest of DIGESTS) {
        const number = deriveNumber(card, digest)
        t.match(number, /^\d+$/)
        t.equal(number.length, card.length)
        t.equal(brandOf(number), brandOf(card))
        t.ok(isLuhnValid(number), number)
        t.not(number, card)
        t.equal(deriveNumber(card, digest), number, 'the same each time')
      }
    const [first, second] = DIGESTS.map((digest) => deriveNumber('4111111111111111', digest))
    t.not(first, second)
  },
)

t.test('if the derived number is equal to the card number, the next number is taken', async (t) => {
  // The digest 1…1 has the value 0.
  const card = deriveNumber('4000999999999990', '1'.repeat(44))
  t.match(card, /^40000{11}\d$/)
  t.match(deriveNumber(card, '1'.repeat(44)), /^40000{10}1\d$/)
})

t.test('the digest gives the account reference, and the date of the card gives the expiry', async (t) => {
  for (const digest of DIGESTS) t.match(derivePar(digest), /^[0-9A-Z]{29}$/)
  t.not(derivePar(DIGESTS[0]!), derivePar(DIGESTS[1]!))
  t.strictSame(deriveExpiry({ expiration_year: 2026 }), { expiration_month: 12, expiration_year: 2029 })
  t.strictSame(deriveExpiry({ expiration_year: 9999 }), { expiration_month: 12, expiration_year: 9999 })
  t.equal(maskNumber('378282246310005'), 'XXXXXXXXXXXX0005')
})

t.test('the card number decides how the network answers', async (t) => {
  t.equal(NETWORK_TOKEN_CARDS.length, 38)
  for (const { number, result } of NETWORK_TOKEN_CARDS)
    t.equal(askNetwork(number) ?? 'success', result, number)
  for (const number of ['4242424242424242', '4222222222222', '2223003122003222'])
    t.equal(askNetwork(number), undefined, number)
  for (const number of ['3566002020360505', '6200000000000005', '36227206271667', '6759649826438453'])
    t.equal(askNetwork(number), 'CARD_NOT_ELIGIBLE', number)
  for (const number of ['4917610000000000003', '675964982643', '12345678901234567'])
    t.equal(askNetwork(number), 'CARD_NUMBER_LENGTH_INVALID', number)
})

t.test('the reason of a refusal says whether the request can be sent again', async (t) => {
  t.equal(explainRefusal('CARD_DECLINED'), 'The issuer declined the card. Do not send the request again.')
  t.match(explainRefusal('CARD_ELIGIBILITY_ERROR'), /once more, and not again/)
  t.match(explainRefusal('PROVISION_DATA_EXPIRED'), /with other data of the card/)
})
