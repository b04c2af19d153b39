/** Claims: of requests with the same idempotency key one runs at a time, and a run in the background is known to run. */

export interface Claim {
  end(): void | Promise<void>
}

export interface Claims {
  /**
   * Claims `name` in a tenant; undefined while another has it. `isLong`: for work of several units, which a unit of work
   * does not keep apart; where servers share a store, only such claims are seen by the others.
   */
  take(tenant: number, name: string, options?: { isLong?: boolean }): Promise<Claim | undefined>
  /** Whether somebody has a long claim on `name`. */
  has(tenant: number, name: string): Promise<boolean>
}

/** Claims of this process, which end with it. */
export function createClaims(): Claims {
  const taken = new Set<string>()
  return {
    async take(tenant, name) {
      const claimed = `${tenant}/${name}`
      if (taken.has(claimed)) return undefined
      taken.add(claimed)
      return {
        end() {
          taken.delete(claimed)
        },
      }
    },
    has: async (tenant, name) => taken.has(`${tenant}/${name}`),
  }
}
