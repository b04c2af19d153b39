/**
 * An engine as one over a network might be, over one in memory: every call takes a turn of the event loop, every fifth
 * work is run again from the start as if it had collided, and it has no capabilities.
 */
import type { Clock } from '../../src/crypto/ports.js'
import type { MaybePromise } from '../../src/maybe-promise.js'
import type { Engine, EngineReader, EngineWriter, LogSealer } from '../../src/storage/engine.js'
import { createMemoryEngine } from '../../src/storage/engines/memory-engine.js'
import type { Durability } from '../../src/storage/store.js'

const RUN_AGAIN_EACH = 5

const turn = () => new Promise<void>(setImmediate)

class SlowReader<E extends EngineReader> implements EngineReader {
  protected readonly inner: E

  constructor(inner: E) {
    this.inner = inner
  }

  get now() {
    return this.inner.now
  }

  get clock() {
    return this.inner.clock
  }

  async get(...args: Parameters<EngineReader['get']>) {
    await turn()
    return this.inner.get(...args)
  }

  async find(...args: Parameters<EngineReader['find']>) {
    await turn()
    return this.inner.find(...args)
  }

  async seek(...args: Parameters<EngineReader['seek']>) {
    await turn()
    return this.inner.seek(...args)
  }

  async findExpired(limit: number) {
    await turn()
    return this.inner.findExpired(limit)
  }
}

class SlowWriter extends SlowReader<EngineWriter> implements EngineWriter {
  async put(...args: Parameters<EngineWriter['put']>) {
    await turn()
    await this.inner.put(...args)
  }

  async remove(...args: Parameters<EngineWriter['remove']>) {
    await turn()
    await this.inner.remove(...args)
  }

  async append(...args: Parameters<EngineWriter['append']>) {
    await turn()
    await this.inner.append(...args)
  }

  async dropTenant(tenant: number) {
    await turn()
    await this.inner.dropTenant(tenant)
  }

  noteTime(...args: Parameters<EngineWriter['noteTime']>) {
    this.inner.noteTime(...args)
  }
}

class ToyEngine implements Engine {
  readonly #inner: Engine
  #works = 0
  #last: Promise<unknown> = Promise.resolve()

  constructor(inner: Engine) {
    this.#inner = inner
  }

  read<T>(work: (reader: EngineReader) => MaybePromise<T>): Promise<T> {
    return this.#run((isVain) =>
      this.#inner.read((reader) => tryOut(isVain, () => work(new SlowReader(reader)))),
    )
  }

  write<T>(work: (writer: EngineWriter) => MaybePromise<T>, durability?: Durability): Promise<T> {
    return this.#run((isVain) =>
      this.#inner.write((writer) => tryOut(isVain, () => work(new SlowWriter(writer))), durability),
    )
  }

  attach(sealer: LogSealer) {
    this.#inner.attach({
      ...sealer,
      seal: (writer, entries) => sealer.seal(new SlowWriter(writer), entries),
    })
  }

  async close() {
    await this.#last
    await this.#inner.close()
  }

  #run<T>(unit: (isVain: boolean) => Promise<T>): Promise<T> {
    const collides = ++this.#works % RUN_AGAIN_EACH === 0
    return this.#inTurn(async () => {
      if (collides) await unit(true).catch(ignoreCollision)
      return unit(false)
    })
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(turn).then(work)
    this.#last = result.catch(() => undefined)
    return result
  }
}

const COLLISION = new Error('The unit of work has collided with another.')

/** A work, or all of a work that does not count, whatever came of it. */
async function tryOut<T>(isVain: boolean, work: () => MaybePromise<T>): Promise<T> {
  if (!isVain) return work()
  await Promise.resolve()
    .then(work)
    .catch(() => undefined)
  throw COLLISION
}

function ignoreCollision(error: unknown): void {
  if (error !== COLLISION) throw error
}

/** An empty vault. */
export function createToyEngine(options: { clock: Clock }): Engine {
  return new ToyEngine(createMemoryEngine(options))
}
