/** The table of test cards on the page. This module is loaded only when the page is rendered. */
import {
  describeBrand,
  describeInNetworkTokens,
  describeInTokens,
  describeInUpdater,
  explainInThreeds,
} from '../../domain/test-cards/describe.js'
import { TEST_CARDS } from '../../domain/test-cards/table.js'
import { encodeHtml as encode } from '../../domain/text/html.js'

export function renderTestCards(): string {
  const rows = TEST_CARDS.map((card) => {
    const texts = [
      describeBrand(card),
      describeInTokens(card),
      explainInThreeds(card),
      describeInUpdater(card),
      describeInNetworkTokens(card),
    ]
    const cells = texts.map((text) => `<td>${encode(text || '–')}</td>`)
    return `<tr><th scope="row"><code>${card.number}</code></th>${cells.join('')}</tr>`
  })
  const heads = ['Number', 'Brand', 'Tokens', '3-D Secure', 'Account updater', 'Network tokens']
  return `<section id="test-cards"><h2>Test cards</h2>
<p>The number of a card decides what each area does. 3-D Secure refuses every other card, unless the setting
<code>threeds.other_cards</code> is <code>frictionless</code>. Funding and country are present if the setting
<code>enrichments.fake</code> was true when the card was stored.</p>
<div class="scroll" tabindex="0"><table class="plain"><thead><tr>${heads.map((head) => `<th scope="col">${head}</th>`).join('')}</tr></thead>
<tbody>${rows.join('')}</tbody></table></div></section>`
}
