/** Runs a command line: parses it, runs the command, prints a failure and returns the exit code. */
import { type Environment, readConfig } from '../config.js'
import { CofferError, interrupted, toProblem } from '../errors.js'
import { createRegistry } from '../framework/registry.js'
import { SETTINGS, type Setting } from '../global-flags.js'
import { loadRegistryFor } from '../operations/load.js'
import type { Vault } from '../vault/vault.js'
import type { CommandContext, ProcessLike } from './context.js'
import { InputReader } from './input/input.js'
import { formatProgram } from './output/shell.js'
import {
  DEFAULT_COLUMNS,
  detectTerminal,
  type InputStream,
  isTerminal,
  type Streams,
  type Terminal,
  write,
} from './output/terminal.js'
import { reactorOptions } from './target/reactor-options.js'

const FAILURE_REFERENCE_BYTES = 6

/** Runs one command line and resolves to its exit code. Never rejects and never ends the process. */
export async function main(process: ProcessLike): Promise<number> {
  let stdin: InputStream | undefined
  const streams: Streams = {
    get stdin() {
      stdin ??= process.stdin
      return stdin
    },
    get stdout() {
      return process.stdout
    },
    get stderr() {
      return process.stderr
    },
  }
  const argv = process.argv.slice(2)
  const stop = new AbortController()
  // The first signal stops the command; it also removes the listeners, so that a second one ends the process.
  const interrupt = () => {
    release()
    stop.abort()
  }
  const release = () => {
    process.off('SIGINT', interrupt)
    process.off('SIGTERM', interrupt)
  }
  process.on('SIGINT', interrupt)
  process.on('SIGTERM', interrupt)
  // Set when the profile and the flags are known, which may fail.
  const settled: Settled = { env: process.env }
  try {
    await runLine(process, argv, { streams, signal: stop.signal, release }, settled)
    return 0
  } catch (error) {
    return await reportFailure(streams, argv, settled, error)
  } finally {
    release()
    // A reader of it may still be waiting for more than anybody will send.
    stdin?.unref?.()
  }
}

interface Settled {
  env: Environment
  terminal?: Terminal
}

async function runLine(
  process: ProcessLike,
  argv: readonly string[],
  { streams, signal, release }: { streams: Streams; signal: AbortSignal; release: () => void },
  settled: Settled,
): Promise<void> {
  const isCompletion = argv[0] === 'completion' && argv[1] === 'words'
  const { describeCommand, isAlone, listCommands, parseLine } = await import('./program.js')
  const registry = isAlone(argv)
    ? createRegistry([])
    : await loadRegistryFor((isCompletion ? argv.slice(3) : argv).slice(0, 2).join(' '))
  const columns = streams.stdout.columns ?? DEFAULT_COLUMNS
  const parsed = parseLine(argv, registry, columns)
  if ('text' in parsed) {
    await write(streams.stdout, parsed.text)
    return
  }
  const { applyProfile } = await import('./commands/profile.js')
  settled.env = await applyProfile(parsed.flags, process.env)
  const { env } = settled
  const config = readConfig(parsed.flags, env)
  // Replaces the line that other users see, for it may have a password.
  if (config.store?.includes('@')) process.title = 'coffer'
  const releaseSignals = async () => {
    // Handles a signal that arrived meanwhile first.
    await new Promise(setImmediate)
    if (!hasOwnEnd) release()
  }
  const mustHaveFields = typeof parsed.flags.fields === 'string'
  const terminal = Object.assign(detectTerminal({ streams, env, flags: config }), {
    mustHaveFields,
    releaseSignals,
  })
  settled.terminal = terminal
  const opened = new Set<Vault>()
  let hasOwnEnd = false
  const context: CommandContext = {
    terminal,
    config,
    env,
    cwd: process.cwd(),
    pid: process.pid,
    nodeVersion: process.version,
    self: [process.argv[0] ?? '', process.argv[1] ?? ''],
    program: formatProgram(process.argv[1] ?? ''),
    clock: process.clock ?? Date.now,
    input: new InputReader({ cwd: process.cwd(), streams }),
    registry,
    listCommands: () => listCommands(registry),
    describeCommand: (words) => describeCommand(registry, words, columns),
    typed: {},
    signal,
    handlesSignals: () => {
      hasOwnEnd = true
      process.on('SIGHUP', ignore)
    },
    ...(process.fetch === undefined ? {} : { fetch: process.fetch }),
    reachVault: async (work, role) => {
      const { reachThisVault } = await import('./target/credentials.js')
      const vault =
        config.url === undefined
          ? await reachThisVault(context, role)
          : await (await import('./target/server.js')).reachServer(context, config.url)
      return using(vault, work)
    },
    withVault: async (work, options) => {
      const { unlockVault } = await import('./target/credentials.js')
      return using(await unlockVault(context, options), work)
    },
  }
  const using = async <V extends Vault, T>(vault: V, work: (vault: V) => Promise<T>): Promise<T> => {
    opened.add(vault)
    try {
      vault.configureReactors?.(await reactorOptions(context))
      const result = await work(vault)
      await vault.settle?.()
      return result
    } finally {
      opened.delete(vault)
      await vault.close()
    }
  }
  // The signal may have come while the command was loaded; nobody is told of it again.
  if (signal.aborted) throw interrupted()
  const end = new Promise<never>((_, reject) => {
    const interrupt = () => {
      if (!hasOwnEnd) reject(interrupted())
    }
    signal.addEventListener('abort', interrupt, { once: true })
  })
  await Promise.race([parsed.run(context), end]).catch(async (error: unknown) => {
    // Closing completes and syncs what is in progress.
    for (const vault of opened) await vault.close()
    throw error
  })
  process.off('SIGHUP', ignore)
}

function ignore(): void {}

/** Prints the failure to standard error and returns its exit code. */
async function reportFailure(
  streams: Streams,
  argv: readonly string[],
  { env, terminal = detectFrom(streams, argv, env) }: Settled,
  error: unknown,
): Promise<number> {
  const { printProblem } = await import('./output/output.js')
  const { randomBytes } = await import('node:crypto')
  const reference = randomBytes(FAILURE_REFERENCE_BYTES).toString('hex')
  await printProblem(
    terminal,
    toProblem(error, reference, 'owner'),
    wantsJson(streams, env, argv) ? 'json' : 'table',
  )
  return error instanceof CofferError ? error.exit : 1
}

/** The terminal of a command line that could not be parsed. */
function detectFrom(streams: Streams, argv: readonly string[], env: Environment): Terminal {
  const color = scanFlag(argv, 'color') ?? env.COFFER_COLOR
  const { choices = [] } = SETTINGS.color as Setting
  return detectTerminal({
    streams,
    env,
    flags: color !== undefined && choices.includes(color) ? { color } : {},
  })
}

function wantsJson({ stdout }: Streams, env: Environment, argv: readonly string[]): boolean {
  const format = scanFlag(argv, 'output', 'o') ?? (env.COFFER_OUTPUT || undefined)
  return format === undefined ? !isTerminal(stdout) : format === 'json' || format === 'ndjson'
}

/** The last value of a flag in `argv`. Works without the parser, because parsing may be what failed. */
function scanFlag(argv: readonly string[], long: string, short?: string): string | undefined {
  const separate = short === undefined ? `--${long}` : `--${long}|-${short}`
  const joined = short === undefined ? `--${long}=` : `--${long}=|-${short}=?`
  const values = argv.flatMap((word, at) => {
    if (new RegExp(`^(?:${separate})$`).test(word)) return argv[at + 1] ?? []
    return new RegExp(`^(?:${joined})(.+)$`, 's').exec(word)?.[1] ?? []
  })
  return values.at(-1)
}
