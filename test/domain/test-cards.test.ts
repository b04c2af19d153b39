import t from 'tap'
import {
  describeBrand,
  describeInNetworkTokens,
  describeInThreeds,
  describeInTokens,
  describeInUpdater,
} from '../../src/domain/test-cards/describe.js'
import type { TestCard } from '../../src/domain/test-cards/table.js'

const card = (more: Partial<TestCard>) => ({ number: '4000000000000000', brand: 'visa', ...more }) as TestCard

t.test('the description of a test card says what each area does with the card', async (t) => {
  t.equal(describeBrand(card({ brand: null })), 'unknown')
  t.equal(describeBrand(card({ brand: 'american express' })), 'American Express')
  t.match(describeInTokens(card({ tokens: { fails_checksum: true } as never })), /^fails the checksum/)
  t.match(describeInTokens(card({ number: '4242424242424242' })), /credit, Bermuda$/)
  t.equal(describeInThreeds(card({})), '', 'a number without a scenario does nothing special')
  t.equal(describeInThreeds(card({ threeds: { scenario: 'CYM' } as never })), 'CYM')
  t.equal(describeInThreeds(card({ threeds: { scenario: 'CYM', brands: ['Visa'] } as never })), 'CYM as Visa')
  t.equal(describeInNetworkTokens(card({})), '')
  t.equal(describeInNetworkTokens(card({ network_tokens: { result: 'CARD_DECLINED' } })), 'CARD_DECLINED')
  t.equal(describeInUpdater(card({})), '')
  const updater = { result_code: 'UPD_PAN', new_number: '4166676667666746' }
  t.equal(describeInUpdater(card({ updater: updater as never })), 'UPD_PAN 4166676667666746')
})
