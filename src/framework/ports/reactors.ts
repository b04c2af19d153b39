import type { CodeAnswer, HeaderMap } from '../../domain/proxy/code-answer.js'
import type { ProxyRequest } from '../../domain/proxy/proxy-request.js'
import type { CodeFault } from '../../domain/reactor/code-fault.js'
import type { CofferError, FailureStatus } from '../../errors.js'
import type { LinkedPackage } from './linker.js'
import type { Destination, Outbound } from './outbound.js'

/** The largest answer to a call of the client, in bytes of JSON (UTF-8). */
export const MAX_ANSWER_BYTES = 4 * 1024 * 1024

/**
 * Calls a method of the client by its dotted name (`tokens.create`). If the method fails, the call throws the error
 * into the reactor code, which can catch the error.
 */
export type ClientCall = ((name: string, args: readonly unknown[]) => Promise<unknown>) & {
  /** The trace id of the call that runs the code. Errors that the reactor code catches contain this trace id. */
  traceId?: string
}

/**
 * The options with which reactor code creates its own client for this server. `environment` and `baseUrl`
 * have equal values.
 */
export interface ApplicationOptions {
  /** The key of the run. Absent if the code has no rights. */
  apiKey?: string
  /** The address of this server, without a slash at the end. */
  baseUrl: string
  environment: string
}

/** The access of one run to this server. */
export interface RunAccess {
  /** The runtime calls `begin` once, when the run starts. `begin` makes the key of the run. */
  begin(): ApplicationOptions
  /** The runtime calls `end` once, when the run has ended. After this call, the key of the run is refused. */
  end(): void
  /**
   * Returns this server if `url` is an address of this server. Without the key of the run, a request reaches this
   * server only if `outbound` allows the host of this server. `headers` have names in lower case, and are absent after
   * a redirect. A redirect never leads to this server.
   * @throws CofferError `forbidden`
   */
  reach(
    url: URL,
    headers: HeaderMap | undefined,
    outbound: Pick<Outbound, 'requireListed'>,
  ): Destination | undefined
}

/**
 * One run of a reactor's code. A child process is used again only if code, configuration, caller and rights
 * are equal.
 */
export interface Invocation {
  tenant: number
  /**
   * Identifies the caller within the tenant, so that the queue treats all callers fairly. Absent if there is only one
   * caller.
   */
  caller?: string
  /** The id of the caller's session. A session has its own child processes, but no queue of its own. */
  session?: string | undefined
  /** Identifies the application or caller whose permissions the client has. Undefined if the code gets no client. */
  rights?: string | undefined
  reactor: string
  code: string
  /** The image of the runtime; the default image if absent. */
  image?: string | undefined
  /**
   * The arguments of the reactor after detokenization, validation and casts. Undefined if the request has no arguments.
   */
  args: Readonly<Record<string, unknown>> | undefined
  /**
   * The properties of the request except `args`, or the whole body of the request if the body is not an object. If
   * `rest` is set, the code gets a request, and the arguments are the property `req` of this request. If `rest` is
   * absent, the code gets only the arguments.
   */
  rest?: unknown
  configuration: Readonly<Record<string, unknown>>
  /** The packages that the code may require in addition to the bundles of the server. */
  packages?: readonly LinkedPackage[]
  client: ClientCall | null
  /** Absent if the code runs without a vault. */
  access?: RunAccess
  /**
   * Only for a transform of a proxy: the message that the code gets instead of arguments. The code returns the
   * transformed message.
   */
  message?: TransformInput
  /** The HTTP status of a failure to which the code gives no status. The default is 500. */
  failureStatus?: FailureStatus | undefined
  /** The run has the time limit of the vault for asynchronous runs. */
  isAsync?: boolean
  /** The memory limit of the run is the memory limit of the vault, multiplied by this factor (1 if absent). */
  memoryFactor?: number | undefined
  /** A time limit for this run in ms. If the time limit of the vault is lower, the limit of the vault applies. */
  timeMs?: number | undefined
  /**
   * The runtime calls `mayStart` when a child is ready, before the child gets any data. If `mayStart` throws, the run
   * ends with that error.
   */
  mayStart?(): Promise<void>
}

/**
 * A message for a transform. The host process passes the body on unchanged. Only the child process parses the
 * body, as UTF-8.
 */
export interface TransformInput extends Partial<ProxyRequest> {
  direction: 'request' | 'response'
  /** Set only for a response. */
  statusCode?: number
  headers: HeaderMap
  body: Uint8Array
}

export interface Transformed {
  headers?: unknown
  /** Replaces the status of a response. */
  statusCode?: unknown
  /** The message is an answer, not a request. `isJson`: the body is JSON, not text that the code returned. */
  answer?: { statusCode: unknown; isJson: boolean }
}

export const MAX_TRANSFORMED_BYTES = 8 * 1024 * 1024

export type ReactorOutcome =
  /**
   * `raw`: the other properties that a transform returned beside `body`. `isThrown`: the code threw `res`
   * instead of returning it. A transform can throw `res`, but cannot return it.
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

/** The console output and the stack may contain plaintext, so only the owner of the vault may see them. */
export interface ReactorRun {
  outcome: ReactorOutcome
  console: readonly ConsoleLine[]
  durationMs: number
  memoryMiB: number
  stack?: string
  /** Why the code does not compile, in the order of the code. */
  faults?: readonly CodeFault[]
}

/**
 * The measures that confine reactor code even if it escapes from its realm. Each member says whether the
 * measure is active on this machine.
 */
export interface Sandbox {
  /** Node refuses files, child processes, workers and addons. */
  node_permissions: boolean
  node_network_permission: boolean
  /** The child has no network interface, and cannot reach abstract sockets of other processes. */
  network_namespace: boolean
  /**
   * The child cannot see or signal other processes. When the first process of the namespace ends, the kernel ends all
   * processes of the namespace.
   */
  process_namespace: boolean
  /** The child has no capabilities, and cannot access the memory of other processes. */
  user_namespace: boolean
  no_new_privileges: boolean
  /** The child cannot open a file or socket after the code is loaded. */
  no_new_descriptors: boolean
  /** The kernel ends the child when the host is killed. */
  ends_with_host: boolean
}

export interface ReactorRuntime {
  readonly sandbox: Sandbox
  /**
   * Runs the code. An error that the code throws becomes a `failure` in the result.
   * @throws CofferError `unavailable`, or `rate_limited` if the queue is full
   */
  run(invocation: Invocation): Promise<ReactorRun>
  /** Compiles and loads the code without calling it. @throws CofferError like a run */
  check(code: string, packages?: readonly LinkedPackage[]): Promise<void>
  /**
   * Compiles the code without running it, and returns the faults of the code.
   * @throws CofferError `unavailable`
   */
  compile(code: string): Promise<readonly CodeFault[]>
  close(): Promise<void>
}

/**
 * The time that the code sees. `offsetMs` is added to the real time. `frozenMs` is the time of a clock that
 * stands still.
 */
export interface GuestTime {
  offsetMs?: number
  frozenMs?: number
}

export interface ReactorOptions {
  prefix?: string
  /** Entries of the form `host` or `host:port`, as in `--allow-net`. */
  allowNet?: readonly string[]
  ca?: string
  /** The absolute path of the directory with the modules that code may require. */
  modulesDirectory?: string
  /** Absolute paths of projects whose packages code may declare. */
  dependencies?: readonly string[]
  /**
   * How many child processes the runtime keeps ready for a first run. The runtime starts them only when it has needed a
   * second child process.
   */
  spares?: number
  time?: () => GuestTime | undefined
}

/**
 * Returns the runtime for the settings of the vault. `values`: the stored settings.
 * @throws CofferError `usage`
 */
export type FindReactors = (values: Readonly<Record<string, unknown>>) => Promise<ReactorRuntime>
