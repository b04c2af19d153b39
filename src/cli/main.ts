import { readConfig } from '../config.js'
import { quoteWord } from '../domain/text/quote-word.js'
import { CofferError, interrupted, toProblem } from '../errors.js'
import { createRegistry } from '../framework/registry.js'
import type { Format } from '../global-flags.js'
import { loadRegistryFor } from '../operations/load.js'
import type { Vault } from '../vault/vault.js'
import type { ParsedLine } from './command-tree.js'
import type { CommandContext, Commands, Options, ProcessLike } from './context.js'
import { InputReader } from './input/input.js'
import { isStdoutClosed } from './output/closed-stdout.js'
import { DEFAULT_COLUMNS, detectTerminal } from './output/terminal.js'

const FAILURE_REFERENCE_BYTES = 6

/** Runs one command line and resolves to its exit code. Never rejects, and never ends the process. */
export async function main(process: ProcessLike): Promise<number> {
  const line = new CommandLine(process)
  try {
    await line.run()
    return 0
  } catch (error) {
    return await line.reportFailure(error)
  } finally {
    line.end()
  }
}

class CommandLine {
  readonly #process: ProcessLike
  /** Undefined until the flags are parsed. */
  #context: CommandContext | undefined
  readonly #input: InputReader
  readonly #stop = new AbortController()
  readonly #hangUp = new AbortController()
  readonly #opened = new Set<Vault>()
  #handlesSignals = false

  constructor(process: ProcessLike) {
    this.#process = process
    this.#input = new InputReader(process)
    process.on('SIGINT', this.#interrupt)
    process.on('SIGTERM', this.#interrupt)
    process.on('SIGHUP', this.#interrupt)
  }

  async run(): Promise<void> {
    const { signal } = this.#stop
    const argv = this.#process.argv.slice(2)
    const program = await import('./program.js')
    const isCompletion = argv[0] === 'completion' && argv[1] === 'words'
    const registry = program.findTerminalCommand(argv[0])?.isAlone
      ? createRegistry([])
      : await loadRegistryFor((isCompletion ? argv.slice(3) : argv).slice(0, 2).join(' '))
    const columns = this.#process.stdout.columns ?? DEFAULT_COLUMNS
    const parsed = program.parseLine(argv, registry, columns)
    const listSummaries = () => program.listSummaries(registry)
    if ('text' in parsed) {
      const { printHelpText } = await import('./commands/help/help.js')
      const { stdout, env } = this.#process
      return printHelpText({ stdout, env, listSummaries }, parsed.text)
    }
    const context = await this.#createContext(parsed.options, {
      registry,
      listSummaries,
      listCommands: () => program.listCommands(registry),
      findTerminalCommand: program.findTerminalCommand,
      describeCommand: (words) => program.describeCommand(registry, words, columns),
    })
    // A signal may have arrived before the listener below is installed.
    if (signal.aborted) throw interrupted()
    const end = new Promise<never>((_, reject) => {
      const interrupt = () => {
        if (!this.#handlesSignals) reject(interrupted())
      }
      signal.addEventListener('abort', interrupt, { once: true })
    })
    try {
      await Promise.race([perform(context, parsed, this.#process), end])
    } finally {
      // Closing a vault completes and syncs its work in progress, also after an interrupt.
      for (const vault of this.#opened) await vault.close()
      this.#process.off('SIGHUP', this.#noteHangUp)
    }
  }

  async reportFailure(error: unknown): Promise<number> {
    const { printProblem } = await import('./output/output.js')
    const { randomBytes } = await import('node:crypto')
    const reference = randomBytes(FAILURE_REFERENCE_BYTES).toString('hex')
    const process = this.#process
    const { terminal = detectTerminal(process, process.env, {}), config } = this.#context ?? {}
    const format = config === undefined ? findFormat(process) : config.output
    // If the text cannot be written, for example to a full disk, the exit code still reports the failure.
    await printProblem(terminal, toProblem(error, reference, 'owner'), format).catch(() => undefined)
    return error instanceof CofferError ? error.exit : 1
  }

  end(): void {
    this.#release()
    this.#input.release()
  }

  /** Removes the listeners, so that a second signal ends the process. */
  readonly #interrupt = () => {
    this.#release()
    this.#stop.abort()
  }

  readonly #noteHangUp = () => this.#hangUp.abort()

  #release(): void {
    this.#process.off('SIGINT', this.#interrupt)
    this.#process.off('SIGTERM', this.#interrupt)
    this.#process.off('SIGHUP', this.#interrupt)
  }

  async #createContext(flags: Options, commands: Commands): Promise<CommandContext> {
    const process = this.#process
    const { applyProfile } = await import('./commands/profile.js')
    const env = await applyProfile(flags, process.env)
    const config = readConfig(flags, env)
    // Replaces the command line in `ps`, because an address with `@` may contain the password of the store.
    if (config.store?.includes('@')) process.title = 'coffer'
    const [, script = ''] = process.argv
    this.#context = {
      ...commands,
      terminal: detectTerminal(process, env, config),
      config,
      env,
      cwd: process.cwd(),
      pid: process.pid,
      nodeVersion: process.version,
      program: /(^|\/)coffer$/.test(script) ? 'coffer' : `node ${quoteWord(script)}`,
      clock: process.clock ?? Date.now,
      input: this.#input,
      typed: { told: new Set() },
      signal: this.#stop.signal,
      hangUp: this.#hangUp.signal,
      parentPid: () => process.ppid,
      handlesSignals: () => {
        this.#handlesSignals = true
        process.off('SIGHUP', this.#interrupt)
        process.on('SIGHUP', this.#noteHangUp)
      },
      ...(process.fetch && { fetch: process.fetch }),
      opened: this.#opened,
    }
    return this.#context
  }
}

/** Finds the format of an error without parsing the flags, because parsing them may have failed. */
function findFormat({ argv, env }: ProcessLike): Format | undefined {
  const asked = /(?<=^|\0)(?:--json|(?:-o\0?|--output[=\0])(?:nd)?json)(?=\0|$)/.test(argv.join('\0'))
  return asked ? 'json' : (env.COFFER_OUTPUT as Format | undefined)
}

async function perform(
  context: CommandContext,
  { command, args, options }: ParsedLine,
  { ppid }: ProcessLike,
): Promise<void> {
  const output = await import('./output/check-output.js')
  if (output.needsStdout(command) && isStdoutClosed(ppid))
    throw new CofferError('storage_failed', 'Standard output is closed, so nothing was done.')
  if ('run' in command) {
    output.checkOutput(context, output.printingOfCommand(command), options)
    const { completeArgs } = await import('./input/gather.js')
    const { name, arguments: specs = [] } = command
    return command.run(context, await completeArgs(context, name, specs, args), options)
  }
  const { chooseForm, isExplained, runOperation } = await import('./run.js')
  const line = chooseForm(command, { context, args, options })
  // `--curl` prints text, so the output flags are not checked.
  if (options.curl !== true)
    output.checkOutput(context, output.printingOf(line.definition, isExplained(options)), options)
  return runOperation(line)
}
