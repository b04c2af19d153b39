/** What README and the reference say of clients and of fidelity is what is so. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import t from 'tap'
import { createRegistry } from '../../src/framework/registry.js'
import { CLIENT_PREFIX, CLIENTS, PLACEHOLDERS } from '../../src/http/clients.js'
import { listFidelity, listRatedCalls, nameCall } from '../../src/http/fidelity.js'
import { NOT_EMULATED } from '../../src/http/not-emulated.js'
import { renderClients, renderFidelity } from '../../src/http/pages/guide.js'
import { registry } from '../../src/operations/all.js'
import { createWorkplace, startProcess } from './process.js'

const root = new URL('../../../', import.meta.url).pathname
const run = promisify(execFile)

/** The text of a section of README without its heading. */
function readSection(heading: string): string {
  const [, section] = readFileSync(`${root}README.md`, 'utf8').split(`\n## ${heading}\n`)
  return section?.split('\n## ')[0] ?? ''
}

const rowOf = (name: string, routed = registry.operations) =>
  listFidelity(routed).find(({ area }) => area === name)!

t.test('the table of README is the one of this version', async (t) => {
  const rows = listFidelity(registry.operations).map(
    ({ area, early, today }) => `| ${area} | ${early} | ${today} |`,
  )
  const table = ['| Area | January 2023 | Today |', '| --- | --- | --- |', ...rows].join('\n')
  const [shown] = /\|[\s\S]*\|/.exec(readSection('What is emulated')) ?? ['']
  t.equal(shown, table, 'copy the expected table into README')
})

t.test('every call is rated, and none that is left out is declared', async (t) => {
  const rated = new Set(listRatedCalls().map(nameCall))
  for (const { endpoint } of registry.routed)
    t.ok(rated.has(nameCall(`${endpoint.method} ${endpoint.path}`)), `${endpoint.method} ${endpoint.path}`)
  t.equal(rated.size, listRatedCalls().length, 'none is rated twice')
  for (const path of Object.values(NOT_EMULATED).flat()) {
    const below = (call: string) => `${call.split(' ')[1]}/`.startsWith(`${path}/`)
    t.same([...rated].filter(below), [], path)
    t.same(
      registry.routed.filter(({ endpoint }) => below(nameCall(`GET ${endpoint.path}`))),
      [],
      path,
    )
  }
})

t.test('a declaration changes the table, and so does its absence', async (t) => {
  t.same(rowOf('Logs'), { area: 'Logs', early: 'emulated', today: 'emulated' })
  const without = registry.operations.filter(({ name }) => name !== 'log entity-types')
  const gap = 'partly: not yet `GET /logs/entity-types`'
  t.same(rowOf('Logs', without), { area: 'Logs', early: gap, today: gap })
  t.same(rowOf('Logs', createRegistry([]).operations), { area: 'Logs', early: 'not yet', today: 'not yet' })
  const [create, ...others] = registry.routed
  const body = { ...create!.endpoint.body, card: {}, bank: {}, _extras: {} }
  const grown = [{ ...create!, endpoint: { ...create!.endpoint, body } }, ...others]
  t.equal(create!.name, 'token create')
  t.match(rowOf('Tokens', grown).today, /^partly: without (?!.*not yet)/, 'an attribute counts too')
  t.match(rowOf('Webhooks'), { early: '–', today: 'not emulated' })
})

t.test('the reference shows the table and the snippets', async (t) => {
  const table = renderFidelity(registry.operations)
  for (const { area } of listFidelity(registry.operations)) t.ok(table.includes(`>${area}<`), area)
  t.notMatch(table, '`')
  const page = renderClients()
  for (const { name } of CLIENTS) t.ok(page.includes(`<h3>${name}`), name)
})

t.test('README has the snippets of this version', async (t) => {
  const section = readSection('Clients')
  for (const { name, package: source, language, code } of CLIENTS) {
    const from = source === undefined ? '' : ` (\`${source}\`)`
    t.ok(section.includes(`${name}${from}:\n\n\`\`\`${language}\n${code}\n\`\`\`\n`), name)
  }
  t.equal(section.split('```').length, 2 * CLIENTS.length + 1 + 2, 'and no other but how to start')
})

t.test('the snippets of the clients at hand work as they are', async (t) => {
  const place = createWorkplace()
  const server = await startProcess(place, ['--ephemeral', '--prefix', CLIENT_PREFIX])
  t.teardown(async () => {
    server.child.kill('SIGTERM')
    await server.ended
    place.remove()
  })
  const { url, applications } = server.announcement
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
