/** The module `async_hooks`, without hooks. */
import { scope } from 'coffer:internals'

type Work = (...args: unknown[]) => unknown

class AsyncLocalStorage {
  readonly #key = {}
  readonly #defaultValue: unknown
  readonly name: string

  constructor({ defaultValue, name = '' }: { defaultValue?: unknown; name?: string } = {}) {
    this.#defaultValue = defaultValue
    this.name = name
  }
  static bind(work: Work): Work {
    return AsyncResource.bind(work)
  }
  static snapshot(): (work: Work, ...args: unknown[]) => unknown {
    const restore = scope.capture()
    return (work, ...args) => restore(() => work(...args))
  }
  getStore(): unknown {
    return scope.get(this.#key) ?? this.#defaultValue
  }
  run(store: unknown, work: Work, ...args: unknown[]): unknown {
    return scope.run(this.#key, store, () => work(...args))
  }
  exit(work: Work, ...args: unknown[]): unknown {
    return scope.run(this.#key, undefined, () => work(...args))
  }
  enterWith(store: unknown): void {
    scope.enter(this.#key, store)
  }
  disable(): void {
    scope.enter(this.#key, undefined)
  }
}

class AsyncResource {
  readonly type: string
  readonly #restore = scope.capture()

  constructor(type: unknown) {
    this.type = String(type)
  }
  static bind(work: Work, type = work.name, self?: unknown): Work {
    return new AsyncResource(type).bind(work, self)
  }
  bind(work: Work, self?: unknown): Work {
    const restore = this.#restore
    return function (this: unknown, ...args: unknown[]) {
      return restore(() => Reflect.apply(work, self ?? this, args))
    }
  }
  runInAsyncScope(work: Work, self?: unknown, ...args: unknown[]): unknown {
    return this.#restore(() => Reflect.apply(work, self, args))
  }
  emitDestroy(): this {
    return this
  }
  asyncId(): number {
    return 0
  }
  triggerAsyncId(): number {
    return 0
  }
}

export default {
  AsyncLocalStorage,
  AsyncResource,
  executionAsyncId: () => 0,
  triggerAsyncId: () => 0,
  executionAsyncResource: () => ({}),
}
