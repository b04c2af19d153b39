/** Descriptors of sorted tables: the one used longest ago is closed when there are too many. */
import type { Files } from '../../files.js'

/** A vault of any number of tables opens and merges within a small limit of descriptors (`ulimit -n`). */
const MOST_OPEN = 40

export class OpenFiles {
  readonly #files: Files
  /** By path, in the order of use. */
  readonly #open = new Map<string, number>()

  constructor(files: Files) {
    this.#files = files
  }

  /** Undefined when there is no such file. Contract: the descriptor is used before another one is asked for. */
  get(path: string): number | undefined {
    const file = this.#open.get(path) ?? this.#files.open(path, 'write')
    if (file === undefined) return undefined
    this.#open.delete(path)
    this.#open.set(path, file)
    if (this.#open.size > MOST_OPEN) this.close(this.#open.keys().next().value!)
    return file
  }

  close(path: string): void {
    const file = this.#open.get(path)
    if (file === undefined) return
    this.#open.delete(path)
    this.#files.close(file)
  }
}
