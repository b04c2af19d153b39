/** The paths of pages below the base of a session. The paths must not change, because clients use these paths. */
export const METHOD_PATH = '/3ds/acs/browser/method'
export const CHALLENGE_PATH = '/3ds/acs/browser/creq'
export const ANSWER_PATH = '/3ds/acs/browser/answer'
export const METHOD_FRAME_PATH = '/pages/method.html'
export const CHALLENGE_FRAME_PATH = '/pages/challenge.html'

export function methodNotificationPath(id: string): string {
  return `/3ds/sessions/${id}/method-notification`
}

export function challengeNotificationPath(id: string): string {
  return `/3ds/sessions/${id}/challenge-notification`
}

/** `step`: for the requests that the page itself sends. */
export function redirectPath(id: string, step?: 'authenticate' | 'finish'): string {
  return `/3ds/redirect/${id}${step === undefined ? '' : `/${step}`}`
}
