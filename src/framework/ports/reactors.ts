import type { CodeAnswer, HeaderMap } from '../../domain/proxy/code-answer.js'
import type { ProxyRequest } from '../../domain/proxy/proxy-request.js'
import type { CodeFault } from '../../domain/reactor/code-fault.js'
import type { CofferError, FailureStatus } from '../../errors.js'
import type { LinkedPackage } from './linker.js'
import type { Destination, Outbound } from './outbound.js'

/** The maximum size of the answer to one call of the client, in bytes of JSON (UTF-8). */
export const MAX_ANSWER_BYTES = 4 * 1024 * 1024

/**
 * Calls a method of the client by its dotted name (`tokens.create`). A failure is thrown into the reactor code, which
 * can catch the error.
 */
export type ClientCall = ((name: string, args: readonly unknown[]) => Promise<unknown>) & {
  /** The trace id of the call that runs the code, for errors that the code catches. */
  traceId?: string
}

/** The options with which reactor code creates its own client for this server. `environment` equals `baseUrl`. */
export interface ApplicationOptions {
  /** The key of the run. Absent if the code has no rights. */
  apiKey?: string
  /** The address of this server, without a slash at the end. */
  baseUrl: string
  environment: string
}

export interface RunAccess {
  /** Called once, when the run starts. Creates the key of the run. */
  begin(): ApplicationOptions
  /** Called once, when the run has ended. From then on, the key of the run is refused. */
  end(): void
  /**
   * Returns this server if `url` is an address of this server. If `headers` lack the key of the run, `outbound` must
   * allow the host of this server. `headers` have names in lower case, and are absent after a redirect. After a
   * redirect, this server is never returned.
   * @throws CofferError `forbidden`
   */
  reach(
    url: URL,
    headers: HeaderMap | undefined,
    outbound: Pick<Outbound, 'requireListed'>,
  ): Destination | undefined
}

/** A child process is used again only if code, configuration, caller and rights are equal. */
export interface Invocation {
  tenant: number
  /**
   * Identifies the caller within the tenant, so that the queue is fair to all callers. Absent if there is only one
   * caller.
   */
  caller?: string
  /** A session has its own child processes, but no queue of its own. */
  session?: string | undefined
  /** Identifies the application or caller whose permissions the client has. Undefined if the code gets no client. */
  rights?: string | undefined
  reactor: string
  code: string
  image?: string | undefined
  /** The arguments after detokenization, validation and casts. Undefined if the request has no arguments. */
  args: Readonly<Record<string, unknown>> | undefined
  /**
   * The other properties of the request, or the whole body if the body is no object. If `rest` is set, the code gets a
   * request with the arguments in `req`. If `rest` is absent, the code gets only the arguments.
   */
  rest?: unknown
  configuration: Readonly<Record<string, unknown>>
  /** The packages that the code may require in addition to the bundles of the server. */
  packages?: readonly LinkedPackage[]
  client: ClientCall | null
  /** Absent if the code runs without a vault. */
  access?: RunAccess
  /** Only for a transform of a proxy: the message that the code gets instead of arguments. */
  message?: TransformInput
  /** The HTTP status if the code fails without a status. The default is 500. */
  failureStatus?: FailureStatus | undefined
  /** Whether the time limit for asynchronous runs applies. */
  isAsync?: boolean
  /** Multiplies the memory limit of the vault. The default is 1. */
  memoryFactor?: number | undefined
  /** In ms. If the time limit of the vault is lower, the limit of the vault applies. */
  timeMs?: number | undefined
  /**
   * Called when a child is ready, before the child gets any data. If `mayStart` throws, the run ends with the error.
   */
  mayStart?(): Promise<void>
}

/** The host process passes the body on unchanged. Only the child process parses the body, as UTF-8. */
export interface TransformInput extends Partial<ProxyRequest> {
  direction: 'request' | 'response'
  /** Only for a response. */
  statusCode?: number
  headers: HeaderMap
  body: Uint8Array
}

export interface Transformed {
  headers?: unknown
  /** Replaces the status of a response. */
  statusCode?: unknown
  /** Present if the message is an answer. `isJson`: the body is JSON, not text that the code returned. */
  answer?: { statusCode: unknown; isJson: boolean }
}

export const MAX_TRANSFORMED_BYTES = 8 * 1024 * 1024

export type ReactorOutcome =
  /**
   * `raw`: the properties that a transform returned beside `body`. `isThrown`: the code threw `res`. A transform can
   * throw `res`, but cannot return `res`.
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

/** Only the owner of the vault may see console and stack, because they may contain plaintext. */
export interface ReactorRun {
  outcome: ReactorOutcome
  console: readonly ConsoleLine[]
  durationMs: number
  memoryMiB: number
  stack?: string
  /** Why the code does not compile, in the order of the lines. */
  faults?: readonly CodeFault[]
}

/**
 * Measures that confine reactor code even if the code escapes from its realm. A member is true if its measure is active
 * on this machine.
 */
export interface Sandbox {
  /** Node refuses files, child processes, workers and addons. */
  node_permissions: boolean
  node_network_permission: boolean
  /** The child has no network interface, and cannot reach abstract sockets of other processes. */
  network_namespace: boolean
  /**
   * The child cannot see or signal other processes. When the first process of the namespace ends, the kernel ends all
   * other processes of the namespace.
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
   * An error of the code becomes a `failure` in the result.
   * @throws CofferError `unavailable`, or `rate_limited` if the queue is full
   */
  run(invocation: Invocation): Promise<ReactorRun>
  /** Compiles and loads the code, but does not call the function of the code. @throws CofferError like {@link run} */
  check(code: string, packages?: readonly LinkedPackage[]): Promise<void>
  /**
   * Returns the faults of the code, without running the code.
   * @throws CofferError `unavailable`
   */
  compile(code: string): Promise<readonly CodeFault[]>
  close(): Promise<void>
}

/** The clock of the code. `offsetMs` is added to the real time. `frozenMs` is the time of a stopped clock. */
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
  /** How many child processes are kept ready, after the runtime has needed a second child process. */
  spares?: number
  time?: () => GuestTime | undefined
}

/**
 * `values`: the stored settings of the vault.
 * @throws CofferError `usage`
 */
export type FindReactors = (values: Readonly<Record<string, unknown>>) => Promise<ReactorRuntime>
