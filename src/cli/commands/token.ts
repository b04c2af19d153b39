/** `coffer token update`: what only the vault can tell of an input. */
import { CofferError } from '../../errors.js'
import type { Steps } from '../context/task.js'

/** Whether the data of a token is text, whose digits are text too, the vault tells by refusing a number. */
export const update: Steps = {
  run: async ({ input, ask, print }) => {
    const result = await ask().catch((error: unknown) => {
      const isRefused = error instanceof CofferError && error.errors?.data !== undefined
      if (!isRefused || !Number.isSafeInteger(input.data)) throw error
      return ask({ ...input, data: String(input.data) })
    })
    await print(result)
  },
}
