/** A lock that many share or one has alone: that one waits until the others are done, and those who come meanwhile wait for it. */
export class ReadersWriterLock {
  #inside = 0
  #closed: Promise<void> | undefined
  #whenEmpty: (() => void) | undefined

  async shared<T>(work: () => Promise<T>): Promise<T> {
    while (this.#closed !== undefined) await this.#closed
    this.#inside++
    try {
      return await work()
    } finally {
      if (--this.#inside === 0) this.#whenEmpty?.()
    }
  }

  async exclusive<T>(work: () => Promise<T>): Promise<T> {
    while (this.#closed !== undefined) await this.#closed
    let open = () => {}
    this.#closed = new Promise((resolve) => {
      open = resolve
    })
    try {
      if (this.#inside > 0)
        await new Promise<void>((resolve) => {
          this.#whenEmpty = resolve
        })
      return await work()
    } finally {
      this.#whenEmpty = undefined
      this.#closed = undefined
      open()
    }
  }
}
