/** The argument `-` means standard input or output, or is refused. No command reads or creates a file named `-`. */
import { readdirSync } from 'node:fs'
import type { Command } from 'commander'
import t from 'tap'
import { listCommands } from '../../src/cli/program.js'
import { ALL_SETTINGS } from '../../src/global-flags.js'
import { registry } from '../../src/operations/all.js'
import { createHome, type Home, testVault } from './home.js'

const TAKES_FILE = /<(?:file|directory)>/
/** Flags that accept `-` for standard input. */
const READ = ['--file', '--from', '--seed', '--tls-cert', '--tls-key', '--ca']

/** Lists the commands of every noun, each with its words. */
function listLeaves(command: Command, words: readonly string[]): [words: readonly string[], Command][] {
  if (command.commands.length === 0) return [[words, command]]
  return command.commands.flatMap((child) => listLeaves(child, [...words, child.name()]))
}

async function isRefused(home: Home, words: readonly string[], message: string): Promise<boolean> {
  const { code, stderr } = await home.run(words)
  return code === 2 && stderr.includes(message) && readdirSync(home.place).length === 0
}

t.test('every flag that takes a file refuses -, unless the flag can read standard input', async (t) => {
  const home = createHome(t)
  let count = 0
  for (const [words, command] of listLeaves(listCommands(registry), []))
    for (const { flags, long } of command.options.filter((option) => TAKES_FILE.test(option.flags))) {
      if (READ.includes(long!)) continue
      const args = command.registeredArguments.filter(({ required }) => required).map(() => 'x')
      const line = [...words, ...args, long!, '-']
      t.ok(await isRefused(home, line, `${long} cannot be -`), `${words.join(' ')} ${flags}`)
      count++
    }
  t.ok(count >= 6)
  for (const { flag, word, variable } of ALL_SETTINGS.filter((setting) => TAKES_FILE.test(setting.flag))) {
    if (READ.includes(word)) continue
    t.ok(await isRefused(home, ['token', 'list', word, '-'], `${word} cannot be -`), flag)
    const { stderr } = await home.run('token list', { env: { [variable]: '-' } })
    t.match(stderr, `${variable} cannot be -`)
  }
})

testVault('a file argument cannot be -, unless it means standard input or output', async (t, home) => {
  const before = readdirSync(home.place)
  for (const [line, message] of [
    ['vault backup -', '<file> cannot be -'],
    ['vault restore - --vault other', '<file> cannot be -'],
    ['vault copy --to -', 'to: must have at least 1 character'],
    ['reactor dev - --watch', 'The file of --watch cannot be -'],
  ] as const)
    t.match(await home.run(line), { code: 2, stderr: message }, line)
  t.match(await home.run('vault keys add --new-passphrase-file -'), { code: 2 })
  for (const [line, stdin] of [
    ['token import -', '{"type":"token","data":1}'],
    ['token create --file -', '{"type":"token","data":1}'],
    ['token export -', ''],
    ['seed apply -', '{"tokens":[]}'],
    ['scan -', 'nothing'],
    ['formula check -', 'module.exports = async () => ({})'],
  ] as const)
    t.equal((await home.run(line, { stdin })).code, 0, line)
  t.same(readdirSync(home.place), before)
})
