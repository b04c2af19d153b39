/**
 * The paths of the pages of 3-D Secure. Every server loads this small module, but loads the pages when the first
 * request needs a page.
 */
import {
  ANSWER_PATH,
  CHALLENGE_FRAME_PATH,
  CHALLENGE_PATH,
  challengeNotificationPath,
  METHOD_FRAME_PATH,
  METHOD_PATH,
  methodNotificationPath,
  redirectPath,
} from '../../../domain/threeds/paths.js'

const ROUTES = {
  methodFrame: { method: 'GET', path: METHOD_FRAME_PATH },
  challengeFrame: { method: 'GET', path: CHALLENGE_FRAME_PATH },
  method: { method: 'POST', path: METHOD_PATH },
  methodNotification: { method: 'POST', path: methodNotificationPath('{id}') },
  challenge: { method: 'POST', path: CHALLENGE_PATH },
  answer: { method: 'POST', path: ANSWER_PATH },
  challengeNotification: { method: 'POST', path: challengeNotificationPath('{id}') },
  redirect: { method: 'GET', path: redirectPath('{id}') },
  redirectAuthenticate: { method: 'POST', path: redirectPath('{id}', 'authenticate') },
  redirectFinish: { method: 'POST', path: redirectPath('{id}', 'finish') },
} as const

export type BankPageName = keyof typeof ROUTES

export interface BankPage {
  name: BankPageName
  method: 'GET' | 'POST'
  /** The pattern of the path, for the access log. */
  route: string
  /** The id of the session. Undefined if only the form contains the id. */
  id: string | undefined
}

const NAMES = Object.keys(ROUTES) as BankPageName[]
const UUID = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/.source
const PATTERNS = NAMES.map((name) => {
  const text = ROUTES[name].path.replaceAll('.', '\\.').replace('{id}', `(${UUID})`)
  return { name, pattern: new RegExp(`^${text}/?$`, 'i') }
})

/** Returns undefined if the path belongs to no page. */
export function findBankPage(path: string): BankPage | undefined {
  if (!path.startsWith('/3ds/') && !path.startsWith('/pages/')) return undefined
  for (const { name, pattern } of PATTERNS) {
    const match = pattern.exec(path)
    const { method, path: route } = ROUTES[name]
    if (match !== null) return { name, method, route, id: match[1]?.toLowerCase() }
  }
  return undefined
}
