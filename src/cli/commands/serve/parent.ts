import { Socket } from 'node:net'
import { usage } from '../../../errors.js'
import type { CommandContext } from '../../context.js'

const LOOKS_EVERY_MS = 250
/** The process id of init, the usual new parent of a process whose parent has ended. */
const INIT = 1
const QUOTED = /'[^']*'|"[^"]*"/g
/** Matches an npm script that runs only this program. */
const OWN_SCRIPT = /^(?:node )?(?:[^\s&;|<>()`$]*\/)?coffer(?:\.js)?(?: [^&;|<>()`$\n]*)?$/

type Started = Pick<CommandContext, 'env' | 'signal' | 'input' | 'terminal' | 'parentPid' | 'hangUp'>

/**
 * Returns a signal that is aborted when the parent ends. If `isAsked` is false, returns a signal only if the parent is
 * a shell that npm or npx has started for this program alone. npm sends SIGTERM only to this shell, and the shell does
 * not pass SIGTERM on.
 * @throws CofferError `usage` if `isAsked` is true and there is no parent
 */
export function signalOfParent(context: Started, isAsked: boolean): AbortSignal | undefined {
  if (isAsked) return signalOfInput(context) ?? watchParent(context, requireParent(context))
  if (!isWrapped(context.env) || context.parentPid() <= INIT) return undefined
  return watchParent(context, context.parentPid(), context.hangUp)
}

export function isWrapped({ npm_lifecycle_script: script }: CommandContext['env']): boolean {
  const word = (quoted: string) => quoted.slice(1, -1).replaceAll(/[^\w./-]/g, '_')
  return script !== undefined && OWN_SCRIPT.test(script.replaceAll(QUOTED, word))
}

function requireParent({ parentPid }: Started): number {
  const pid = parentPid()
  if (pid > INIT) return pid
  throw usage('--exit-with-parent: the process that started this one has ended already.')
}

/**
 * Returns a signal that is aborted when standard input ends. Returns undefined if standard input is neither a pipe nor
 * a socket, because any other input never ends, or has ended already.
 */
function signalOfInput({ input, terminal: { stdin } }: Started): AbortSignal | undefined {
  if (stdin.isTTY || !(stdin instanceof Socket)) return undefined
  input.claimStdin('--exit-with-parent')
  const ended = new AbortController()
  for (const event of ['end', 'close', 'error']) stdin.once(event, () => ended.abort())
  stdin.resume()
  return ended.signal
}

/** Returns a signal that is aborted when `pid` is no longer the parent, unless `except` was aborted before. */
function watchParent({ parentPid, signal }: Started, pid: number, except?: AbortSignal): AbortSignal {
  const ended = new AbortController()
  let looks = 0
  const timer = setInterval(() => {
    looks = parentPid() === pid ? 0 : looks + 1
    // Closing a terminal ends the parent and also sends SIGHUP to this process. The second check gives SIGHUP the time
    // to arrive and to abort `except`.
    if (looks < 2) return
    clearInterval(timer)
    if (except?.aborted !== true) ended.abort()
  }, LOOKS_EVERY_MS)
  timer.unref()
  signal.addEventListener('abort', () => clearInterval(timer), { once: true })
  return ended.signal
}
