/** The steps of a session, with their log messages. The dashboard recognizes a step by its message. */
export const STEP_MESSAGES = {
  created: '3DS session created',
  described: '3DS session updated',
  method: 'Method step of 3DS session completed',
  authenticated: '3DS session authenticated',
  answered: 'Challenge of 3DS session answered',
  ended: 'Challenge of 3DS session ended',
  read: '3DS session retrieved',
  retrieved: 'Challenge result of 3DS session retrieved',
} as const

export type StepName = keyof typeof STEP_MESSAGES

const NAMES = Object.keys(STEP_MESSAGES) as StepName[]

export function stepOf(message: string): StepName | undefined {
  return NAMES.find((name) => STEP_MESSAGES[name] === message)
}
