import type { CodeAnswer, HeaderMap } from '../../domain/proxy/code-answer.js'
import type { ProxyRequest } from '../../domain/proxy/proxy-request.js'
import type { CofferError } from '../../errors.js'

/** The largest answer to a call of the client, in bytes of JSON (UTF-8). */
export const MAX_ANSWER_BYTES = 4 * 1024 * 1024

/** Calls a method of the client by its dotted name (`tokens.create`). Reactor code catches the errors. */
export type ClientCall = ((name: string, args: readonly unknown[]) => Promise<unknown>) & {
  /** The trace id of the call that runs the code, for the errors that it catches. */
  traceId?: string
}

/**
 * One run of a reactor's code. A child process is reused only for the same code, configuration, caller and
 * rights.
 */
export interface Invocation {
  tenant: number
  /** Identifies the caller within the tenant, for fair queueing; absent if there is only one caller. */
  caller?: string
  /**
   * The id of the caller's session. A session has its own children, but shares the caller's place in the
   * queue.
   */
  session?: string | undefined
  /** Identifies the application or caller whose permissions the client has; undefined without a client. */
  rights?: string | undefined
  reactor: string
  code: string
  /** Detokenized, validated and cast; undefined if no arguments were given. */
  args: Readonly<Record<string, unknown>> | undefined
  /**
   * The rest of the request. With it, `req` is the request and its arguments. Without it, `req` is the
   * arguments alone.
   */
  rest?: Readonly<Record<string, unknown>>
  configuration: Readonly<Record<string, unknown>>
  client: ClientCall | null
  /**
   * For a transform of a proxy: the message that the code gets instead of arguments. The code returns another
   * message.
   */
  message?: TransformInput
  /** ms; lowers the time limit, never raises it. */
  timeMs?: number | undefined
  /** Called when a child is ready, before it gets any data. An error ends the run with that error. */
  mayStart?(): Promise<void>
}

/** A message for a transform. Only the child parses its body (UTF-8); the host passes it on unchanged. */
export interface TransformInput extends Partial<ProxyRequest> {
  direction: 'request' | 'response'
  headers: HeaderMap
  body: Uint8Array
}

export interface Transformed {
  headers?: unknown
  /** The message is an answer, not a request. `isJson`: the body is JSON, not text that the code returned. */
  answer?: { statusCode: unknown; isJson: boolean }
}

export const MAX_TRANSFORMED_BYTES = 8 * 1024 * 1024

export type ReactorOutcome =
  /**
   * `raw`: what a transform returned beside `body`. `isThrown`: the code threw `res`; a transform can only
   * throw it.
   */
  | {
      kind: 'result'
      raw?: unknown
      tokenize?: unknown
      res?: CodeAnswer
      isThrown?: true
      body?: Uint8Array
    }
  | { kind: 'failure'; error: CofferError }

export interface ConsoleLine {
  level: 'debug' | 'info' | 'log' | 'warn' | 'error'
  text: string
}

/** Console and stack may contain plaintext, so only the vault's owner may see them. */
export interface ReactorRun {
  outcome: ReactorOutcome
  console: readonly ConsoleLine[]
  durationMs: number
  memoryMiB: number
  stack?: string
}

/**
 * The confinement of reactor code that escaped its realm. Each member says whether a measure is active on
 * this machine.
 */
export interface Sandbox {
  /** Node refuses files, child processes, workers and addons. */
  node_permissions: boolean
  node_network_permission: boolean
  /** No network interface, no abstract sockets of other processes. */
  network_namespace: boolean
  /** Other processes are invisible and cannot be signalled. All processes end with the first one. */
  process_namespace: boolean
  /** No capabilities, and no access to the memory of other processes. */
  user_namespace: boolean
  no_new_privileges: boolean
  /** No file or socket can be opened after the code is loaded. */
  no_new_descriptors: boolean
  /** The kernel ends the child when the host is killed. */
  ends_with_host: boolean
}

export interface ReactorRuntime {
  readonly sandbox: Sandbox
  /** Errors of the code are a `failure`. @throws CofferError `unavailable`, `rate_limited` in the queue */
  run(invocation: Invocation): Promise<ReactorRun>
  /** Compiles and loads code without calling it. @throws CofferError like a run */
  check(code: string): Promise<void>
  close(): Promise<void>
}

/** The time that the code sees: ms added to the real time, or the ms at which the clock is frozen. */
export interface GuestTime {
  offsetMs?: number
  frozenMs?: number
}

export interface ReactorOptions {
  prefix?: string
  /** `host` or `host:port`, as in `--allow-net`. */
  allowNet?: readonly string[]
  ca?: string
  modulesDirectory?: string
  spares?: number
  time?: () => GuestTime | undefined
}

/** Returns the runtime for the vault's settings. `values`: the stored ones. @throws CofferError `usage` */
export type FindReactors = (values: Readonly<Record<string, unknown>>) => Promise<ReactorRuntime>
