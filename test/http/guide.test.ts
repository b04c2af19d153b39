/** Checks README, docs/emulation.md and the reference against the program and the fixtures. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import t from 'tap'
import { FILTERS } from '../../src/domain/expression/parse.js'
import { CLIENT_PREFIX, rateArea, readAreas, readClients } from '../../src/http/openapi/emulation.js'
import { renderClients, renderFidelity } from '../../src/http/pages/pages.js'
import { registry } from '../../src/operations/all.js'
import { serveFor } from './process.js'

const root = new URL('../../../', import.meta.url).pathname
const run = promisify(execFile)

const CLIENTS = readClients().map((client) => ({ ...client, code: client.code.join('\n') }))
/** Placeholders in the snippets, each with the text that the test puts in its place. */
const PLACEHOLDERS = { url: 'http://localhost:4010', key: 'key_…' }

/** Returns the text of a section without its heading. */
function readSection(heading: string, document = 'docs/emulation.md'): string {
  const [, section] = readFileSync(root + document, 'utf8').split(`\n## ${heading}\n`)
  return section?.split('\n## ')[0] ?? ''
}

const areas = readAreas()

/** Splits `GET PUT /path` into `GET /path` and `PUT /path`. All parameter names become one common placeholder. */
function eachPart(part: string): string[] {
  const [, methods, path] = /^([A-Z ]+) (\/.*)$/.exec(part) ?? []
  if (methods === undefined || path === undefined) return [part]
  return methods.split(' ').map((method) => nameCall(`${method} ${path}`))
}

function nameCall(call: string): string {
  return call.replaceAll(/\{[^}]*\}/g, '{}')
}

/** Returns all HTTP calls of the program, with their attributes and filters. */
function listParts(): Set<string> {
  const filters = [...FILTERS.keys()].map((name) => `| ${name}`)
  const calls = registry.operations.flatMap((operation) => {
    if (operation.kind === 'relay') return [`calls through \`${operation.relay.path}\``]
    const { endpoint, output, http } = operation
    if (endpoint === undefined) return []
    const call = nameCall(`${endpoint.method} ${endpoint.path}`)
    const answered = output?.type === 'object' && endpoint.method !== 'GET' ? output.properties : {}
    const attributes = Object.keys({ ...endpoint.body, ...endpoint.query, ...answered })
    const older = http?.olderPath === undefined ? [] : [`${endpoint.method} ${http?.olderPath}`]
    return [call, ...older, ...attributes.map((name) => `${call} ${name}`)]
  })
  return new Set([...calls, ...filters])
}

t.test('the tables in the documents are equal to the tables of fixtures/emulation.json', async (t) => {
  const rows = areas.map(({ last_compared: last = '', ...each }) => {
    const cells = [each.area, ...rateArea(each), last]
    return `| ${cells.join(' | ')} |`.replace('|  |', '| |')
  })
  const head = ['| Area | January 2023 | Today | Last compared |', '| --- | --- | --- | --- |']
  const table = [...head, ...rows].join('\n')
  const [shown] = /\|[\s\S]*\|/.exec(readSection('What is emulated')) ?? ['']
  t.equal(shown, table, 'copy the expected table into docs/emulation.md')
  const statuses = { Emulated: 'emulated', Partly: 'partly', 'Not emulated': 'not emulated' }
  const summary = Object.entries(statuses).map(([status, begin]) => {
    const those = areas.filter((each) => rateArea(each)[1].startsWith(begin))
    return `| ${status} | ${those.map(({ area }) => area).join(', ')} |`
  })
  const [short] = /\|[\s\S]*\|/.exec(readSection('What is emulated', 'README.md')) ?? ['']
  t.equal(short, ['| Status | Areas |', '| --- | --- |', ...summary].join('\n'), 'copy it into README')
})

interface Enrichment {
  countries: Record<string, { name: string }>
  card_ranges: Record<'from' | 'to' | 'funding' | 'country', string>[]
}

t.test('the table of card ranges in the document is equal to the fixture', async (t) => {
  const { countries, card_ranges } = JSON.parse(
    readFileSync(`${root}fixtures/enrichment.json`, 'utf8'),
  ) as Enrichment
  const rows = card_ranges.map(({ from, to, funding, country }) =>
    ['|', from, '|', to === from ? '–' : to, '|', funding, '|', countries[country]?.name, '|'].join(' '),
  )
  const head = '| First number | Last number | Funding | Country |\n| --- | --- | --- | --- |'
  const section = readSection('Details of cards', 'docs/cards.md')
  t.ok(
    section.includes(`\n${[head, ...rows].join('\n')}\n`),
    `copy it into docs/cards.md:\n${rows.join('\n')}`,
  )
})

t.test(
  'every call and attribute in the emulation table exists in the program, and the table has every call',
  async (t) => {
    const parts = listParts()
    const rated = areas.flatMap(({ in_2023 = [], since_2023 = [] }) =>
      [...in_2023, ...since_2023].flatMap(eachPart),
    )
    for (const part of rated) t.ok(parts.has(part), part)
    const calls = rated.filter((part) => /^[A-Z]+ \S+$/.test(part))
    t.equal(new Set(calls).size, calls.length, 'no call is rated twice')
    for (const { endpoint } of registry.routed)
      t.ok(
        calls.includes(nameCall(`${endpoint.method} ${endpoint.path}`)),
        `${endpoint.method} ${endpoint.path}`,
      )
    for (const path of areas.flatMap(({ not_emulated = [] }) => not_emulated))
      t.same(
        [...parts].filter((call) => `${call.split(' ')[1]}/`.startsWith(`${path}/`)),
        [],
        `${path} is not declared`,
      )
  },
)

t.test(
  'the reference on the page contains the table of emulated areas and the snippets for clients',
  async (t) => {
    const table = renderFidelity()
    for (const { area } of areas) t.ok(table.includes(`>${area}<`), area)
    t.notMatch(table, '`')
    const page = renderClients()
    for (const { name } of CLIENTS) t.ok(page.includes(`<h3>${name}`), name)
  },
)

t.test('docs/emulation.md has the snippets that the program generates', async (t) => {
  const section = readSection('Clients')
  for (const { name, package: source, language, code } of CLIENTS) {
    const from = source === undefined ? '' : ` (\`${source}\`)`
    t.ok(section.includes(`${name}${from}:\n\n\`\`\`${language}\n${code}\n\`\`\`\n`), name)
  }
  t.equal(
    section.split('```').length,
    2 * CLIENTS.length + 1 + 2,
    'the section has no other snippets except those that start the server',
  )
})

t.test('each snippet for a client that is installed here runs unchanged', async (t) => {
  const { url, applications } = (await serveFor(t, ['--ephemeral', '--prefix', CLIENT_PREFIX])).announcement
  const commands: Record<string, (code: string) => [string, string[]]> = {
    js: (code) => [
      process.execPath,
      ['--input-type=module', '-e', `${code}\nconsole.log(JSON.stringify(token))`],
    ],
    sh: (code) => ['sh', ['-c', code]],
  }
  const runnable = CLIENTS.filter(
    ({ name, language }) => language === 'js' || (name === 'curl' && existsSync('/usr/bin/curl')),
  )
  t.ok(runnable.length >= 2)
  for (const { name, language, code } of runnable) {
    const filled = code
      .replaceAll(PLACEHOLDERS.url, url)
      .replaceAll(PLACEHOLDERS.key, applications.private!.key!)
    const [program, words] = commands[language]!(filled)
    const { stdout } = await run(program, words, { cwd: root, timeout: 30_000 })
    const token = JSON.parse(stdout)
    t.equal(token.type, 'token', name)
    const read = await fetch(`${url}/tokens/${token.id}`, {
      headers: { 'BT-API-KEY': applications.private!.key! },
    })
    t.match(await read.json(), { data: 'a secret' }, name)
  }
})
