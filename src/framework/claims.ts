/** Claims on idempotency keys: of requests with the same key one runs at a time. */

/** The requests with an idempotency key that run now. */
export interface Claims {
  /**
   * Claims `scope`; undefined while another request has it. Here it ends with the process, which alone has the vault
   * open. For servers that share a store it has to be a row with a lease.
   */
  take(scope: string): Promise<{ end(): Promise<void> } | undefined>
}

export function createClaims(): Claims {
  const taken = new Set<string>()
  return {
    async take(scope) {
      if (taken.has(scope)) return undefined
      taken.add(scope)
      return {
        async end() {
          taken.delete(scope)
        },
      }
    },
  }
}
