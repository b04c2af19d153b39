import type { Presentations } from '../task.js'

export const presentations: Presentations = {
  'control outbox': { empty: 'No mail yet.' },
  'control not-emulated': { empty: 'No request for an area that is not emulated.' },
  'control webhooks': { empty: 'No event matches.' },
}
