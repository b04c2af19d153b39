/**
 * The port through which operations run people's code: what an invocation is, what comes of it. It knows nothing of
 * processes, and nothing here has an effect.
 */
import type { CofferError } from '../errors.js'

/** Most bytes of JSON in UTF-8 that a call of the client answers. */
export const MOST_ANSWER_BYTES = 4 * 1024 * 1024

/** A call of the bound client, by its dotted name (`tokens.create`); what it throws is what the code catches. */
export type ClientCall = (name: string, args: readonly unknown[]) => Promise<unknown>

/** One run of one reactor's code. What ran in a child is never run beside other code, configuration or rights. */
export interface Invocation {
  tenant: number
  /** Who asked, a name within the tenant: children are shared out between those. Left out where there is one only. */
  caller?: string
  /** The application that the reactor is bound to; undefined for none. */
  application?: string | undefined
  reactor: string
  code: string
  /** Any JSON object; detokenized, validated and cast. */
  args: Readonly<Record<string, unknown>>
  configuration: Readonly<Record<string, unknown>>
  /** The client handed to the code; null when the reactor is bound to no application. */
  client: ClientCall | null
}

/** What the code returned, or the error that its caller gets. */
export type ReactorOutcome =
  | { kind: 'result'; raw?: unknown; tokenize?: unknown }
  | { kind: 'failure'; error: CofferError }

export interface ConsoleLine {
  level: 'debug' | 'info' | 'log' | 'warn' | 'error'
  text: string
}

/** All that is known of a run. Console and stack may hold plaintext: they are for the vault's owner only. */
export interface ReactorRun {
  outcome: ReactorOutcome
  console: readonly ConsoleLine[]
  durationMs: number
  /** Most memory seen above that of an idle child. */
  memoryMiB: number
  /** Where the code failed, in its own lines. */
  stack?: string
}

/** What compiling and loading code without calling it tells. `fault` is the 422 that a run would end in. */
export interface CompileReport {
  fault?: CofferError
  /** Dotted names that the code reads of `req.args`, as far as its text shows. */
  args: string[]
  /** Names that the code reads of `req.configuration`. */
  configuration: string[]
  /** Where the code may read more than its text shows. */
  unknown: string[]
}

/**
 * What holds code back that has left its realm, on this machine: each is in force, or the system does not give it.
 * `vault status` shows it as it stands here.
 */
export interface Sandbox {
  /** Node refuses files, child processes, workers and addons. */
  node_permissions: boolean
  /** Node refuses sockets too: version 25 and later. */
  node_network_permission: boolean
  /** No network interface, no abstract sockets of others. */
  network_namespace: boolean
  /** No other process is seen or can be signalled, and none outlives the first. */
  process_namespace: boolean
  /** No capabilities outside, and no access to the memory of other processes. */
  user_namespace: boolean
  no_new_privileges: boolean
  /** No file or socket can be opened once the code is there. */
  no_new_descriptors: boolean
  /** The kernel ends the child when the host is killed. */
  ends_with_host: boolean
}

export interface ReactorRuntime {
  readonly sandbox: Sandbox
  /**
   * Never rejects for what the code does: that is a `failure` with `reactor_timeout`, `reactor_failed` or
   * `formula_invalid`.
   * @throws CofferError `unavailable` when no child can be started or too many wait; `rate_limited` when too many of
   * the same caller do, or one waited for too long.
   */
  run(invocation: Invocation): Promise<ReactorRun>
  /** @throws CofferError as `run` does. */
  check(code: string): Promise<CompileReport>
  /** Ends every child once it has nothing to do; what was asked for before is still done. */
  retire(): void
  /** Kills every child; what still runs ends as `unavailable`. */
  close(): Promise<void>
}

/** What whoever starts the process says; the rest is in the vault's settings. */
export interface ReactorOptions {
  /** Under which name code finds its client; `svc` unless said. */
  prefix?: string
  /** `host` or `host:port`, as `--allow-net` takes them. */
  allowNet?: readonly string[]
  /** Where the bundles are that code may require. */
  modulesDirectory?: string
  /** Children started ahead of need: worth it where there is more to come. */
  spares?: number
}

/** The runtime as the vault's settings want it now: `values` are those that are kept. @throws CofferError `usage` */
export type FindReactors = (values: Readonly<Record<string, unknown>>) => Promise<ReactorRuntime>
