/** Has a person write text in their editor. The file is theirs alone and removed whatever happens. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CofferError, usage } from '../../errors.js'
import type { CommandContext } from '../context.js'
import { VALUE_LIMIT_BYTES } from './input.js'

type EditorContext = Pick<CommandContext, 'env' | 'signal'>

function findEditor({ VISUAL, EDITOR }: EditorContext['env']): string | undefined {
  return VISUAL || EDITOR || undefined
}

export function hasEditor({ env }: EditorContext): boolean {
  return findEditor(env) !== undefined
}

/**
 * `draft`: the text to begin with. Resolves to the text that was saved, without its last line break. What the editor keeps beside the file is removed with it.
 * @throws CofferError `usage` if the editor fails, `too_large`
 */
export async function editText(
  { env, signal }: EditorContext,
  ending: 'js' | 'json',
  draft = '',
): Promise<string> {
  signal.throwIfAborted()
  // Only this user can enter it; the usual place for such files is in memory.
  const directory = mkdtempSync(join(env.XDG_RUNTIME_DIR || tmpdir(), 'coffer-'))
  const remove = () => rmSync(directory, { recursive: true, force: true })
  // An interrupt ends the process before anything that waits for the editor is reached.
  signal.addEventListener('abort', remove, { once: true })
  try {
    const file = join(directory, `input.${ending}`)
    writeFileSync(file, draft, { mode: 0o600, flag: 'wx' })
    // The shell becomes the editor, so that what ends the one ends the other.
    const editor = findEditor(env)!
    const program = /^\s*\w+=/.test(editor) ? `env ${editor}` : editor
    const words = ['-c', `exec ${program} "$1"`, 'sh', file]
    const child = spawn('/bin/sh', words, { stdio: 'inherit', env: { ...env }, signal })
    const [code] = (await once(child, 'exit')) as [number | null]
    if (code !== 0) throw usage('The editor failed, so nothing was taken from it.')
    if (statSync(file).size > VALUE_LIMIT_BYTES)
      throw new CofferError('too_large', `The text has more than ${VALUE_LIMIT_BYTES} bytes.`)
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '')
  } finally {
    signal.removeEventListener('abort', remove)
    remove()
  }
}
