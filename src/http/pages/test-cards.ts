/** The table of the test cards of 3-D Secure, for the reference of the page. */
import { readFileSync } from 'node:fs'
import { findFixture } from '../../assets.js'
import { encodeHtml as encode } from '../../domain/text/html.js'
import { describeScenario, type ScenarioName } from '../../domain/threeds/scenarios.js'

interface TestCard {
  number: string
  brands: readonly string[]
  scenario: ScenarioName
}

export function renderTestCards(): string {
  const cards = JSON.parse(readFileSync(findFixture('threeds-cards.json'), 'utf8')) as TestCard[]
  const rows = cards.map(({ number, brands, scenario }) => {
    const text = `${scenario}: ${describeScenario(scenario)}`
    return `<tr><th scope="row"><code>${number}</code></th><td>${encode(brands.join(', ') || '–')}</td><td>${encode(text)}</td></tr>`
  })
  return `<section id="test-cards"><h2>Test cards of 3-D Secure</h2>
<p>The number of a card decides what the test bank does. Every other card is refused, unless the setting
<code>threeds.other_cards</code> is <code>frictionless</code>.</p>
<div class="scroll" tabindex="0"><table class="plain"><thead><tr><th scope="col">Number</th><th scope="col">Brand</th><th scope="col">What the bank does</th></tr></thead>
<tbody>${rows.join('')}</tbody></table></div></section>`
}
