/** A Map of at most `limit` entries. At the limit, `set` removes the entry that was set the longest time ago. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #limit: number

  constructor(limit: number) {
    super()
    this.#limit = limit
  }

  override set(key: K, value: V): this {
    this.delete(key)
    super.set(key, value)
    if (this.size > this.#limit) this.delete(this.keys().next().value as K)
    return this
  }
}
