/**
 * What some lines print is compared with `fixtures/transcripts.txt`, in a pipe and on terminals, wide and narrow.
 * `COFFER_RECORD=1 node dist/test/cli/transcripts.test.js` writes that anew.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { main } from '../../src/cli/main.js'
import { type Run, runProcess } from './fake-process.js'

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

const HOME = [
  ['init', '--starter-apps'],
  ['token', 'create', '--id', 'card-1', '--type', 'card', '--data', '{"number":"4242424242424242"}'],
  [...'token create --id ada --type token --data Ada --mask'.split(' '), '{{ data | reveal_last: 1 }}'],
  'formula create --name greet --type private --code @code.js'.split(' '),
  'reactor create --name greet --code @code.js'.split(' '),
  'proxy create --name payments --destination-url https://api.example.com/'.split(' '),
]

function run(cwd: string, words: readonly string[], options: Partial<Run>) {
  const env = { HOME: cwd, XDG_CONFIG_HOME: join(cwd, 'config') }
  return runProcess(main, { words, cwd, ...options, env })
}

async function makeHome(place: string, options: Partial<Run>): Promise<void> {
  mkdirSync(place)
  writeFileSync(join(place, 'body.json'), '{}')
  writeFileSync(join(place, 'code.js'), 'module.exports = async () => ({ raw: {} })')
  for (const words of HOME) {
    const { code, stderr } = await run(place, [...words, '--quiet'], options)
    if (code !== 0) throw new Error(`${words.join(' ')} failed: ${stderr}`)
  }
}

/** Tells to what sockets of this process connect, other than to a path. */
function watchConnections(tell: (address: string) => void): () => void {
  const { connect } = Socket.prototype
  Socket.prototype.connect = function (this: Socket, ...given: unknown[]) {
    const [first] = given.flat() as ({ path?: string; host?: string; port?: number } | undefined)[]
    if (first?.path === undefined) tell(`${first?.host}:${first?.port}`)
    return connect.apply(this, given as Parameters<typeof connect>)
  } as typeof connect
  return () => {
    Socket.prototype.connect = connect
  }
}

t.test('what commands print is what was recorded', async (t) => {
  const place = mkdtempSync(join(tmpdir(), 'coffer-recorded-'))
  t.teardown(() => rmSync(place, { recursive: true, force: true }))
  const made = join(place, 'made')
  const clock = () => NOW
  const reached: string[] = []
  t.teardown(watchConnections((address) => reached.push(address)))
  await makeHome(made, { clock })
  const blocks: string[] = []
  for (const line of LINES)
    for (const [way, options] of Object.entries(WAYS)) {
      const copy = join(place, 'made-copy')
      cpSync(made, copy, { recursive: true })
      const { code, stdout, stderr } = await run(copy, line.split(' '), { clock, ...options })
      rmSync(copy, { recursive: true })
      blocks.push(
        normalise(`$ coffer ${line}  # ${way}\n${mark(stdout, '  ')}${mark(stderr, '! ')}= ${code}\n`, place),
      )
    }
  if (process.env.COFFER_RECORD === '1') writeFileSync(RECORDED, blocks.join('\n'))
  const recorded = readFileSync(RECORDED, 'utf8').split('\n\n')
  for (const [at, block] of blocks.entries()) t.equal(block.trimEnd(), recorded[at]?.trimEnd())
  t.equal(blocks.length, recorded.length)
  t.same(reached, [], 'no command connects to anything')
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
