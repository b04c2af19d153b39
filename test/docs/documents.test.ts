/**
 * Runs every snippet of README and `docs/`, and compares its output with the document. With `TAP_SNAPSHOT=1`, this file
 * writes the output into the documents instead, and draws `docs/terminal.svg`.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { parseLine } from '../../src/cli/program.js'
import { readClients } from '../../src/http/openapi/emulation.js'
import { registry } from '../../src/operations/all.js'
import { withoutStyle } from '../cli/fake-process.js'
import { isInstalled, waitFor } from '../support/process.js'
import { drawCast } from './cast.js'
import {
  findPort,
  isShown,
  parseBlocks,
  ROOT,
  readDocument,
  runModule,
  runShell,
  splitCommands,
} from './document.js'

t.setTimeout(300_000)
t.jobs = 2

const isUpdating = process.env.TAP_SNAPSHOT === '1'
const NAMES = [
  'README.md',
  ...readdirSync(`${ROOT}docs`).flatMap((name) => (/\.md$/.test(name) ? [`docs/${name}`] : [])),
  'docs/skills/coffer/SKILL.md',
]
const CAST = 'docs/terminal.svg'
/** Links to files that are in the repository and not in the package. */
const REPOSITORY = /^https:\/\/github\.com\/coffer-vault\/coffer\/(tree|blob|raw)\/main\//
/**
 * The snippets for the vendor's clients. This file leaves these snippets out, because `test/http/guide.test.ts`
 * compares and runs them.
 */
const CLIENTS = new Set(readClients().map(({ code }) => `${code.join('\n')}\n`))
/**
 * The reason to skip the tests, or false. The tests need the program `script` of util-linux, and on other systems
 * `script` is a different program.
 */
const skip =
  process.platform === 'linux' && isInstalled('script') ? false : 'script of util-linux is not installed'

const place = mkdtempSync(join(tmpdir(), 'coffer-docs-'))
t.teardown(() => rmSync(place, { recursive: true, force: true }))
const all = NAMES.map((name) => ({ name, text: readDocument(name), blocks: parseBlocks(readDocument(name)) }))

for (const { name, text, blocks } of all)
  t.test(`the snippets of ${name} succeed with the shown output`, { skip }, async (t) => {
    const run = blocks.filter(({ directive, code }) => directive === undefined && !CLIENTS.has(code))
    const ofShell = run.filter(({ language }) => language === 'sh')
    const ofModule = run.filter(({ language }) => language === 'js')
    for (const { code, language, line } of run) {
      t.match(language, /^(sh|js|json)$/, 'the language of each block is known')
      if (language === 'json') t.doesNotThrow(() => JSON.parse(code), `line ${line}`)
    }
    const port = await findPort()
    const printed = await runShell(ofShell, { place: mkdtempSync(join(place, 'run-')), port }, async () => {
      if (ofModule.length === 0) return
      const { code, stderr } = await runModule(ofModule, port)
      t.equal(code, 0, stderr)
    })
    let updated = text
    for (const { block, text: raw, code } of printed) {
      const own = withoutStyle(raw)
      const { output, line } = block
      if (output === undefined) {
        t.equal(code, 0, `line ${line} succeeds`, { found: own })
        if (!block.isHidden) t.notMatch(own, /^(\S+: )?error:/m, `line ${line} prints no error`)
      } else if (isUpdating && !isShown(output, own))
        updated = updated.replace(`\`\`\`text\n${output}\`\`\``, () => `\`\`\`text\n${own.trimEnd()}\n\`\`\``)
      else
        t.ok(isShown(output, own), `line ${line} prints what the document shows`, {
          found: own,
          wanted: output,
        })
    }
    if (updated !== text) writeFileSync(`${ROOT}${name}`, updated)
  })

t.test('a documented command that is not run has only names and flags that exist', async (t) => {
  for (const { name, blocks } of all)
    for (const { code, directive, language } of blocks) {
      if (!directive?.startsWith('not run') || language !== 'sh') continue
      for (const [line, words] of code.replaceAll('\\\n', ' ').matchAll(/^coffer ([^|>#&\n]*)/gm))
        t.notOk('text' in parseLine(words!.trim().split(/ +/), registry, 80), `${name}: ${line}`)
    }
})

t.test('the vitest files in the documents pass', async (t) => {
  const folder = mkdtempSync(join(place, 'vitest-'))
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const blocksOf = (wanted: string) =>
    all.flatMap(({ blocks }) => blocks.filter(({ directive }) => directive === wanted))
  const files = blocksOf('vitest')
  const setups = blocksOf('vitest setup').map(({ code }, at) => ({ name: `./setup-${at}.mjs`, code }))
  for (const { name, code } of setups) writeFileSync(join(folder, name), code)
  for (const [at, { code }] of files.entries()) writeFileSync(join(folder, `snippet-${at}.test.mjs`), code)
  const alias = { 'coffer/vitest': join(ROOT, 'dist/vitest.mjs'), coffer: join(ROOT, 'dist/index.cjs') }
  const config = { resolve: { alias }, test: { globalSetup: setups.map(({ name }) => name) } }
  writeFileSync(join(folder, 'vitest.config.mjs'), `export default ${JSON.stringify(config)}`)
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs')
  const { code, stdout, stderr } = await waitFor(
    spawn(process.execPath, [vitest, 'run'], { cwd: folder, env: { ...process.env, NO_COLOR: '1' } }),
  )
  t.equal(code, 0, stdout + stderr)
  t.match(stdout, new RegExp(`Test Files +${files.length} passed`))
})

t.test('each operation in docs/testing.md has the route that the document shows', async (t) => {
  const [, table = ''] = readDocument('docs/testing.md').split('| Operation | Request |\n')
  const rows = table.split('\n\n', 1)[0]!.split('\n').slice(1)
  for (const row of rows) {
    const [names, routes] = row
      .split(' | ')
      .map((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code))
    for (const [at, name] of names!.entries()) {
      const operation = registry.find(name!)
      const path = operation?.kind === 'relay' ? operation.relay.path : operation?.route
      t.equal(path, routes![at], String(name))
    }
  }
  t.ok(rows.length > 9)
})

t.test('links lead to files and headings that exist', async (t) => {
  const slug = (heading: string) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-')
  const more = [
    'docs/llms.txt',
    'ARCHITECTURE.md',
    '.github/CONTRIBUTING.md',
    '.github/SECURITY.md',
    'CHANGELOG.md',
  ]
  const headings = (path: string) =>
    [...readDocument(path).matchAll(/^#+ (.*)$/gm)].map(([, text]) => slug(text!))
  for (const name of [...NAMES, ...more])
    for (const [, link] of readDocument(name).matchAll(/\]\(([^)\s]+)\)/g)) {
      const local = link!.replace(REPOSITORY, `file://${ROOT}`)
      if (/^https?:/.test(local)) continue
      const { pathname, hash } = new URL(local, `file://${ROOT}${name}`)
      t.doesNotThrow(() => statSync(pathname), `${name}: ${link}`)
      if (hash !== '' && pathname.endsWith('.md'))
        t.ok(headings(pathname.slice(ROOT.length)).includes(hash.slice(1)), `${name}: ${link}`)
    }
})

t.test(
  `${CAST} shows the commands of README whose output does not change between runs`,
  { skip },
  async (t) => {
    const [shown = ''] = readDocument('README.md').split('\n## Three uses\n')
    const blocks = parseBlocks(shown).filter(({ directive }) => directive === undefined)
    const commands = blocks.flatMap(splitCommands)
    const port = await findPort()
    const term = 'xterm-256color'
    const printed = await runShell(commands, { place: mkdtempSync(join(place, 'cast-')), port, term })
    const cast = drawCast(printed.filter(({ text }) => !/[0-9a-f]{32}/.test(text)))
    if (isUpdating) writeFileSync(`${ROOT}${CAST}`, cast)
    else t.equal(readDocument(CAST), cast, 'the picture is up to date. Draw it again with TAP_SNAPSHOT=1')
  },
)
