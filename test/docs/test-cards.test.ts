/**
 * The help, the document and the page that are generated from `fixtures/cards.json`. With `TAP_SNAPSHOT=1`, the test
 * writes the help and the table of the document.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import {
  describeBrand,
  describeInNetworkTokens,
  describeInThreeds,
  describeInTokens,
  describeInUpdater,
  explainInThreeds,
} from '../../src/domain/test-cards/describe.js'
import { findPublished, TEST_CARDS, type TestCard } from '../../src/domain/test-cards/table.js'
import { describeScenario, SCENARIOS, type ScenarioName } from '../../src/domain/threeds/scenarios.js'
import { renderTestCards } from '../../src/http/pages/test-cards.js'
import { ROOT } from './document.js'

const HELP = `${ROOT}fixtures/help/test-cards.txt`
const DOCUMENT = `${ROOT}docs/test-cards.md`
const isUpdating = process.env.TAP_SNAPSHOT === '1'

/** A row of the help, such as `5454545454545454  Mastercard  3DS FA`. */
function formatHelpRow(card: TestCard): string {
  const columns = [`  ${card.number.padEnd(19)}`, describeBrand(card).padEnd(16)]
  const areas = {
    '3DS': describeInThreeds,
    updater: describeInUpdater,
    'network tokens': describeInNetworkTokens,
    tokens: describeInTokens,
  }
  const facts = Object.entries(areas).flatMap(([area, describe]) => {
    const text = describe(card)
    return text === '' ? [] : `${area} ${text}`
  })
  return [...columns, facts.join('; ')].join('  ').trimEnd()
}

function formatHelp(): string {
  const scenarios = (Object.keys(SCENARIOS) as ScenarioName[]).map(
    (name) => `  ${name.padEnd(3)}  ${describeScenario(name)}`,
  )
  return `The number of a card decides what tokens, 3-D Secure (3DS), the account updater and network tokens do with it:

${TEST_CARDS.map(formatHelpRow).join('\n')}

What the test bank of 3-D Secure does:

${scenarios.join('\n')}

3-D Secure refuses every other card, unless the setting threeds.other_cards is frictionless. Tokens have funding and country only if
the setting enrichments.fake was true when the card was stored. More: docs/test-cards.md

Examples:
  $ coffer help test-cards | grep CYM
  $ coffer help test-cards | grep -A1 UPD_PAN
`
}

function formatTable(): string {
  const rows = TEST_CARDS.map((card) => {
    const texts = [
      describeInTokens(card),
      explainInThreeds(card),
      describeInUpdater(card),
      describeInNetworkTokens(card),
    ]
    return `| ${[card.number, describeBrand(card), ...texts.map((text) => text || '–')].join(' | ')} |`
  })
  return [
    '| Number | Brand | Tokens | 3-D Secure | Account updater | Network tokens |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows,
  ].join('\n')
}

t.test('the help of test cards is equal to the fixture', async (t) => {
  if (isUpdating) writeFileSync(HELP, formatHelp())
  t.equal(readFileSync(HELP, 'utf8'), formatHelp())
})

t.test('the table of the document is equal to the fixture', async (t) => {
  const table = /\| Number \| Brand [\s\S]*?(?=\n\n|\n$)/
  const text = readFileSync(DOCUMENT, 'utf8')
  if (isUpdating) writeFileSync(DOCUMENT, text.replace(table, formatTable()))
  t.equal(table.exec(readFileSync(DOCUMENT, 'utf8'))?.[0], formatTable())
})

t.test('the reference of the page has all test cards', async (t) => {
  const page = renderTestCards()
  for (const { number } of TEST_CARDS) t.ok(page.includes(`<code>${number}</code>`), number)
  t.equal(page.split('<tr>').length - 2, TEST_CARDS.length)
  t.match(page, '<td>CYM: a mandated challenge, then successful</td><td>–</td><td>–</td>')
})

t.test('the description of a card names its result in each area', async (t) => {
  const describe = (number: string) => {
    const card = findPublished(number)!
    return [
      describeBrand(card),
      describeInTokens(card),
      describeInThreeds(card),
      describeInUpdater(card),
      describeInNetworkTokens(card),
    ]
  }
  t.strictSame(describe('4111111111111111'), [
    'Visa',
    'sca_required, credit',
    'FA',
    'UPD_PAN 4166676667666746',
    '',
  ])
  t.strictSame(describe('4012888888881881'), [
    'Visa',
    '',
    '',
    'UPD_PAN 4212345678910006 12/2026',
    'PROVISION_DATA_EXPIRED',
  ])
  t.strictSame(describe('4200000000000015'), [
    'Visa',
    'fails the checksum, sca_required, credit',
    'CYM',
    '',
    '',
  ])
  t.strictSame(describe('6759649826438453'), ['Maestro', 'no brand', 'FR as Mastercard', '', ''])
  t.strictSame(describe('4000002500001001'), ['Cartes Bancaires', 'brand visa', '', '', ''])
  t.strictSame(describe('6200000000000005'), ['UnionPay', 'credit, Svalbard and Jan Mayen', '', '', ''])
  t.strictSame(describe('122000000000003'), ['unknown', '', 'ED', 'WRN_UNSUPPORTED_NETWORK', ''])
  t.strictSame(describe('370000000000002'), [
    'American Express',
    'sca_required, credit',
    'CY',
    'ERR_INVALID_CONFIG',
    'success',
  ])
})
