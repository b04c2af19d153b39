import type { ResultOf } from '../../operations/all.js'
import type { Hooks, Presentations } from '../task.js'

/** By its id one delivery is printed with its payload and answer, which a table lacks. */
const showDeliveries: Hooks = {
  view: (answer, { input }) => {
    const { data = [] } = answer as Partial<ResultOf<'webhook deliveries'>>
    return data.find(({ id }) => id === input.id) ?? answer
  },
}

export const presentations: Presentations = {
  'webhook deliveries': {
    empty: 'No event of the last 24 hours. See: coffer webhook list',
    hooks: showDeliveries,
  },
}
