import type { Outcome } from '../../../framework/operation.js'
import type { OperationRequest, Vault } from '../../../vault/vault.js'
import type { CommandContext } from '../../context.js'

/** The vault of a run, open while calls are under way, so that other commands reach it in between. */
export class SharedVault {
  readonly #reachVault: CommandContext['reachVault']
  #calls = 0
  #opened: Promise<Vault> | undefined
  #closed: Promise<unknown> = Promise.resolve()
  #close: (() => void) | undefined

  constructor({ reachVault }: Pick<CommandContext, 'reachVault'>) {
    this.#reachVault = reachVault
  }

  /** @throws CofferError those of the operation and of opening the vault */
  async ask(request: OperationRequest): Promise<Outcome> {
    this.#calls++
    try {
      this.#opened ??= this.#open()
      return (await (await this.#opened).ask(request)) as Outcome
    } finally {
      if (--this.#calls === 0) {
        this.#opened = undefined
        this.#close?.()
      }
    }
  }

  /** Resolves when the vault is closed. */
  async settle(): Promise<void> {
    await this.#closed
  }

  async #open(): Promise<Vault> {
    await this.#closed
    return new Promise((resolve, reject) => {
      const work = (vault: Vault) =>
        new Promise<void>((close) => {
          this.#close = close
          resolve(vault)
        })
      this.#closed = this.#reachVault(work).catch(reject)
    })
  }
}
