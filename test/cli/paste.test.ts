/** Pastes README's commands into every shell that is installed, in a pseudo-terminal, and compares what they print. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { startProgram } from '../start-program.js'
import { PROGRAM, waitFor } from './binary.js'
import { withoutStyle } from './fake-process.js'

t.setTimeout(400_000)

/** Interactive, and without settings of the person who runs the test. */
const SHELLS: Record<string, string> = {
  bash: 'bash --norc --noprofile -i',
  dash: 'dash -i',
  zsh: 'zsh -f -i',
  fish: 'fish --no-config -i',
}
/** What is different each time. */
const CHANGING = [
  /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g,
  /[\da-f]{32}/g,
  /\/\S*(?=\/\.coffer$|\/\.config)/gm,
]

function isInstalled(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`]).status === 0
}

/** What stays the same each time, without blank lines. */
function settle(text: string): string[] {
  const same = CHANGING.reduce((left, pattern) => left.replace(pattern, '#'), text)
  return same.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trimEnd()]))
}

const readme = readFileSync(fileURLToPath(new URL('../../../README.md', import.meta.url)), 'utf8')
const [, section = ''] = readme.split('\n## Five minutes\n')
const [shown = ''] = section.split('\nServe the same vault over HTTP')
const blocks = (language: string) =>
  [...shown.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(([, text = '']) => text)
const commands = blocks('sh').join('')
const expected = settle(blocks('text').join(''))

t.test('README has as many outputs as blocks of commands', async (t) => {
  t.equal(blocks('text').length, blocks('sh').length)
  t.ok(expected.length > 20)
})

for (const [shell, line] of Object.entries(SHELLS)) {
  const skip = isInstalled('script') && isInstalled(shell) ? false : `${shell} or script is not installed`
  t.test(`README's commands paste into ${shell}`, { skip }, async (t) => {
    const place = mkdtempSync(join(tmpdir(), 'coffer-paste-'))
    t.teardown(() => rmSync(place, { recursive: true, force: true }))
    mkdirSync(join(place, 'bin'))
    symlinkSync(PROGRAM, join(place, 'bin', 'coffer'))
    const child = startProgram('script', ['-qfec', `stty cols 110 -echo; ${line}`, '/dev/null'], {
      cwd: place,
      env: {
        PATH: [join(place, 'bin'), dirname(process.execPath), process.env.PATH].join(':'),
        HOME: place,
        TERM: 'dumb',
        PS1: '$ ',
        LC_ALL: 'C.UTF-8',
      },
    })
    const ended = waitFor(child)
    child.stdin.write(`${commands}exit\n`)
    const { stdout } = await ended
    // A shell echoes what is pasted before, after or amid its prompts; what the program prints stands on lines.
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
