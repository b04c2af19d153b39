import { authorizeSession, createSession } from './session.js'

export const noun = {
  name: 'session',
  summary: 'Give browsers keys that live for minutes',
  operations: [createSession, authorizeSession],
}
