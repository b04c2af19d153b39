/** The noun `session` and its operations, in the order of the help. */
import { authorizeSession, createSession } from '../session/session.js'

export const noun = {
  name: 'session',
  summary: 'Give browsers keys that live for minutes',
  operations: [createSession, authorizeSession],
}
