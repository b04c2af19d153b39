/**
 * A share of the transcripts; `npm run test:soak transcripts` has all of them. What some lines print is compared with
 * `fixtures/transcripts.txt`; `COFFER_RECORD=1 node dist/test/cli/transcripts.test.js` writes that anew.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { makeVault, runIn, transcribe } from './transcripts.js'

const RECORDED = fileURLToPath(new URL('../../../fixtures/transcripts.txt', import.meta.url))
const NOW = Date.UTC(2030, 0, 2, 3, 4, 5)

const LINES = [
  'token list',
  'token list -o csv --fields id,type,data',
  'token get card-1',
  'token get card-1 --reveal --fields data,mask',
  'token get nobody',
  'token create --no-input',
  'token delete ada --yes',
  'token search type:card --fields id,containers',
  'app list --type private',
  'reactor list --fields name,formula.name',
  'log list --size 2 --entity-type token',
  'log entity-types',
  'tenant get',
  'proxy list --fields name,destination_url',
  'profile list',
  'completion tcsh',
  'token lst',
  'scan body.json',
  'unlock --for never',
  'serve --port x',
]
const WAYS = { piped: {}, wide: { columns: 120 }, narrow: { columns: 40 } }

t.setTimeout(240_000)

t.test('commands and their flags behave in a pipe and on terminals, wide and narrow', async (t) => {
  const { lines, faults } = await transcribe((at) => at % 50 === 0)
  t.ok(lines >= 8, `${lines} lines`)
  t.same(faults, [])
})

t.test('what commands print is what was recorded', async (t) => {
  const place = mkdtempSync(join(tmpdir(), 'coffer-recorded-'))
  t.teardown(() => rmSync(place, { recursive: true, force: true }))
  const made = join(place, 'made')
  const clock = () => NOW
  await makeVault(made, { clock })
  const blocks: string[] = []
  for (const line of LINES)
    for (const [way, options] of Object.entries(WAYS)) {
      const { code, stdout, stderr } = await runIn(made, line.split(' '), { clock, ...options })
      blocks.push(
        normalise(`$ coffer ${line}  # ${way}\n${mark(stdout, '  ')}${mark(stderr, '! ')}= ${code}\n`, place),
      )
    }
  if (process.env.COFFER_RECORD === '1') writeFileSync(RECORDED, blocks.join('\n'))
  const recorded = readFileSync(RECORDED, 'utf8').split('\n\n')
  for (const [at, block] of blocks.entries()) t.equal(block.trimEnd(), recorded[at]?.trimEnd())
  t.equal(blocks.length, recorded.length)
})

function mark(text: string, sign: string): string {
  return text.replace(/^/gm, sign).slice(0, text === '' ? 0 : -sign.length)
}

/** Without what is drawn by chance, in the same width. */
function normalise(text: string, place: string): string {
  return text
    .replaceAll(place, '/home')
    .replace(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, (id) => id.replace(/[0-9a-f]/g, '0'))
    .replace(/"instance":"[0-9a-f]{12}"/g, '"instance":"0"')
    .replace(/\b[1-9A-HJ-NP-Za-km-z]{40,46}\b/g, 'FINGERPRINT')
    .replaceAll('\u001b', '\\e')
    .replaceAll('\r', '\\r')
}
