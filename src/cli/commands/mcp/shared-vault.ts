import type { Outcome } from '../../../framework/operation.js'
import type { OperationRequest, Vault } from '../../../vault/vault.js'
import type { CommandContext } from '../../context.js'
import { reachThisVault, withVault } from '../../target/vault.js'

/** The vault of a run, open while calls are under way, so that other commands reach it in between. */
export function shareVault(context: CommandContext) {
  let calls = 0
  let opened: Promise<Vault> | undefined
  let closed: Promise<unknown> = Promise.resolve()
  let close: (() => void) | undefined
  const open = async (): Promise<Vault> => {
    await closed
    return new Promise((resolve, reject) => {
      const work = (vault: Vault) =>
        new Promise<void>((end) => {
          close = end
          resolve(vault)
        })
      closed = reachThisVault(context)
        .then((vault) => withVault(context, vault, work))
        .catch(reject)
    })
  }
  return {
    /** @throws CofferError those of the operation and of opening the vault */
    ask: async (request: OperationRequest): Promise<Outcome> => {
      calls++
      try {
        opened ??= open()
        return (await (await opened).ask(request)) as Outcome
      } finally {
        if (--calls === 0) {
          opened = undefined
          close?.()
        }
      }
    },
    /** Resolves when the vault is closed. */
    settle: () => closed,
  }
}
