import type { ResultOf } from '../../operations/all.js'
import { printWarning } from '../output/output.js'
import type { Hooks, Presentations, Task } from '../task.js'

const createWebhook: Hooks = {
  run: async (task, usual) => {
    let made: Partial<ResultOf<'webhook create'>> = {}
    const print: Task['print'] = async (result, ...how) => {
      made = result as ResultOf<'webhook create'>
      await task.print(result, ...how)
    }
    await usual?.({ ...task, print })
    const { destination } = made
    if (destination !== undefined)
      await printWarning(
        task.context.terminal,
        `Events of this webhook wait and are not sent. ${destination.failure}`,
      )
  },
}

/** A delivery that is requested by id is printed with its payload and its answer, which the table does not show. */
const showDeliveries: Hooks = {
  view: (answer, { input }) => {
    const { data = [] } = answer as Partial<ResultOf<'webhook deliveries'>>
    return data.find(({ id }) => id === input.id) ?? answer
  },
}

export const presentations: Presentations = {
  'webhook create': { hooks: createWebhook },
  'webhook deliveries': {
    empty: 'No event of the last 24 hours. See: coffer webhook list',
    hooks: showDeliveries,
  },
}
