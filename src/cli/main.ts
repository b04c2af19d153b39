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
import type { ParsedLine } from './program.js'
import { reactorOptions } from './target/reactor-options.js'

const FAILURE_REFERENCE_BYTES = 6

/** Runs one command line and resolves to its exit code. Never rejects and never ends the process. */
export async function main(process: ProcessLike): Promise<number> {
  const line = new CommandLine(process)
  try {
    await line.run()
    return 0
  } catch (error) {
    return await reportFailure(line, error)
  } finally {
    line.end()
  }
}

/** One command line of a process: its streams, its signals and the vaults that it has open. */
class CommandLine {
  readonly argv: readonly string[]
  readonly streams: Streams
  /** With the settings of the profile, as soon as it is known. */
  env: Environment
  /** Undefined until the flags are known, which may fail. */
  terminal: Terminal | undefined
  readonly #process: ProcessLike
  readonly #stop = new AbortController()
  readonly #opened = new Set<Vault>()
  #stdin: InputStream | undefined
  /** Whether the command ends by itself after a signal. */
  #handlesSignals = false

  constructor(process: ProcessLike) {
    this.#process = process
    this.argv = process.argv.slice(2)
    this.env = process.env
    const takeStdin = () => (this.#stdin ??= process.stdin)
    this.streams = {
      get stdin() {
        return takeStdin()
      },
      get stdout() {
        return process.stdout
      },
      get stderr() {
        return process.stderr
      },
    }
    process.on('SIGINT', this.#interrupt)
    process.on('SIGTERM', this.#interrupt)
  }

  /** @throws CofferError that of the command; `interrupted` */
  async run(): Promise<void> {
    const parsed = await this.#parse()
    if ('text' in parsed) {
      await write(this.streams.stdout, parsed.text)
      return
    }
    const { signal } = this.#stop
    const context = await this.#createContext(parsed)
    // The signal may have come while the command was loaded; nobody is told of it again.
    if (signal.aborted) throw interrupted()
    const end = new Promise<never>((_, reject) => {
      const interrupt = () => {
        if (!this.#handlesSignals) reject(interrupted())
      }
      signal.addEventListener('abort', interrupt, { once: true })
    })
    await Promise.race([parsed.run(context), end]).catch(async (error: unknown) => {
      // Closing completes and syncs what is in progress.
      for (const vault of this.#opened) await vault.close()
      throw error
    })
    this.#process.off('SIGHUP', ignore)
  }

  end(): void {
    this.#release()
    // A reader of it may still be waiting for more than anybody will send.
    this.#stdin?.unref?.()
  }

  /** The first signal stops the command; it also removes the listeners, so that a second one ends the process. */
  readonly #interrupt = () => {
    this.#release()
    this.#stop.abort()
  }

  #release(): void {
    this.#process.off('SIGINT', this.#interrupt)
    this.#process.off('SIGTERM', this.#interrupt)
  }

  async #parse() {
    const { argv } = this
    const isCompletion = argv[0] === 'completion' && argv[1] === 'words'
    const program = await import('./program.js')
    const registry = program.isAlone(argv)
      ? createRegistry([])
      : await loadRegistryFor((isCompletion ? argv.slice(3) : argv).slice(0, 2).join(' '))
    const columns = this.streams.stdout.columns ?? DEFAULT_COLUMNS
    return {
      ...program.parseLine(argv, registry, columns),
      registry,
      listCommands: () => program.listCommands(registry),
      describeCommand: (words: readonly string[]) => program.describeCommand(registry, words, columns),
    }
  }

  async #createContext({ flags, registry, listCommands, describeCommand }: Parsed): Promise<CommandContext> {
    const process = this.#process
    const { applyProfile } = await import('./commands/profile.js')
    this.env = await applyProfile(flags, process.env)
    const config = readConfig(flags, this.env)
    // Replaces the line that other users see, for it may have a password.
    if (config.store?.includes('@')) process.title = 'coffer'
    const releaseSignals = async () => {
      // Handles a signal that arrived meanwhile first.
      await new Promise(setImmediate)
      if (!this.#handlesSignals) this.#release()
    }
    const mustHaveFields = typeof flags.fields === 'string'
    const detected = detectTerminal({ streams: this.streams, env: this.env, flags: config })
    this.terminal = Object.assign(detected, { mustHaveFields, releaseSignals })
    const context: CommandContext = {
      ...{ terminal: this.terminal, config, env: this.env, registry, listCommands, describeCommand },
      cwd: process.cwd(),
      pid: process.pid,
      nodeVersion: process.version,
      self: [process.argv[0] ?? '', process.argv[1] ?? ''],
      program: formatProgram(process.argv[1] ?? ''),
      clock: process.clock ?? Date.now,
      input: new InputReader({ cwd: process.cwd(), streams: this.streams }),
      typed: {},
      signal: this.#stop.signal,
      handlesSignals: () => {
        this.#handlesSignals = true
        process.on('SIGHUP', ignore)
      },
      ...(process.fetch === undefined ? {} : { fetch: process.fetch }),
      reachVault: async (work, role) => {
        const { reachThisVault } = await import('./target/credentials.js')
        const vault =
          config.url === undefined
            ? await reachThisVault(context, role)
            : await (await import('./target/server.js')).reachServer(context, config.url)
        return this.#use(context, vault, work)
      },
      withVault: async (work, options) => {
        const { unlockVault } = await import('./target/credentials.js')
        return this.#use(context, await unlockVault(context, options), work)
      },
    }
    return context
  }

  async #use<V extends Vault, T>(
    context: CommandContext,
    vault: V,
    work: (vault: V) => Promise<T>,
  ): Promise<T> {
    this.#opened.add(vault)
    try {
      vault.configureReactors?.(await reactorOptions(context))
      const result = await work(vault)
      await vault.settle?.()
      return result
    } finally {
      this.#opened.delete(vault)
      await vault.close()
    }
  }
}

type Parsed = ParsedLine & Pick<CommandContext, 'registry' | 'listCommands' | 'describeCommand'>

function ignore(): void {}

/** Prints the failure to standard error and returns its exit code. */
async function reportFailure(line: CommandLine, error: unknown): Promise<number> {
  const { streams, argv, env } = line
  const { printProblem } = await import('./output/output.js')
  const { randomBytes } = await import('node:crypto')
  const reference = randomBytes(FAILURE_REFERENCE_BYTES).toString('hex')
  const terminal = line.terminal ?? detectFrom(streams, argv, env)
  const problem = toProblem(error, reference, 'owner')
  await printProblem(terminal, problem, wantsJson(streams, env, argv) ? 'json' : 'table')
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
