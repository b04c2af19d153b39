/**
 * Pastes the commands of docs/cli.md into every installed shell in a pseudo-terminal, and compares their output with
 * the document.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { parseBlocks, readDocument, settle } from '../docs/document.js'
import { createPath, isInstalled, waitFor } from '../support/process.js'
import { withoutStyle } from './fake-process.js'

t.setTimeout(400_000)

/** The command that starts each shell interactively, without the settings of the person who runs the test. */
const SHELLS: Record<string, string> = {
  bash: 'bash --norc --noprofile -i',
  dash: 'dash -i',
  zsh: 'zsh -f -i',
  fish: 'fish --no-config -i',
}
const [, section = ''] = readDocument('docs/cli.md').split('\n## Five minutes\n')
const blocks = parseBlocks(section.split('\n## ')[0]!)
const commands = blocks.map(({ code }) => code).join('')
const expected = settle(blocks.map(({ output = '' }) => output).join(''))

for (const [shell, line] of Object.entries(SHELLS)) {
  const skip = isInstalled('script') && isInstalled(shell) ? false : `${shell} or script is not installed`
  t.test(`the commands of docs/cli.md can be pasted into ${shell}`, { skip }, async (t) => {
    const place = mkdtempSync(join(tmpdir(), 'coffer-paste-'))
    t.teardown(() => rmSync(place, { recursive: true, force: true }))
    const child = spawn('script', ['-qfec', `stty cols 110 -echo; ${line}`, '/dev/null'], {
      cwd: place,
      env: { PATH: createPath(place), HOME: place, TERM: 'dumb', PS1: '$ ', LC_ALL: 'C.UTF-8' },
    })
    const ended = waitFor(child)
    child.stdin.write(`${commands}exit\n`)
    const { stdout } = await ended
    t.ok(expected.length > 20 && blocks.every(({ output }) => output !== undefined))
    // A shell may also print the pasted text after a prompt. The test compares whole lines and ignores prompts.
    const lines = settle(withoutStyle(stdout).replaceAll('\r\n', '\n').replaceAll('\r', '\n'))
    let from = 0
    for (const wanted of expected) {
      const at = lines.findIndex((each, index) => index >= from && each.replace(/^(\$ |> )+/, '') === wanted)
      t.ok(at >= 0, `${wanted}\n${at < 0 ? stdout : ''}`)
      if (at >= 0) from = at + 1
    }
    const unexpected = lines.filter((each) => /^(\S* )?error:|not found|no matches/i.test(each))
    t.equal(unexpected.length, 2, unexpected.join('\n'))
  })
}
