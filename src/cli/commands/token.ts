/** `coffer token update`: repeats an update whose data must be text. */
import { CofferError } from '../../errors.js'
import type { Hooks } from '../task.js'

/** Digits in --data are a number unless the token's data is text, so a refused number is sent again as text. */
export const update: Hooks = {
  run: async ({ input, ask, print }) => {
    const result = await ask().catch((error: unknown) => {
      const isRefused = error instanceof CofferError && error.errors?.data !== undefined
      if (!isRefused || !Number.isSafeInteger(input.data)) throw error
      return ask({ ...input, data: String(input.data) })
    })
    await print(result)
  },
}
