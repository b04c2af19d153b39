/** For example `#/requests/e88b7591?status=4xx`. */
export interface Route {
  screen: string
  id?: string | undefined
  filters: Record<string, string>
}

export function readRoute(): Route {
  const [path = '', query = ''] = location.hash.slice(2).split('?')
  const [screen = '', id] = path.split('/').map(decodeURIComponent)
  return { screen, id: id || undefined, filters: Object.fromEntries(new URLSearchParams(query)) }
}

export function linkTo(screen: string, id?: string, filters: Record<string, string> = {}): string {
  const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== ''))
  return `#/${screen}${id === undefined ? '' : `/${encodeURIComponent(id)}`}${query.size === 0 ? '' : `?${query}`}`
}

export const linkToRequest = (traceId: string) => linkTo('requests', traceId.slice(0, 8))

/** The screen for each type of entity in the log. */
const ENTITY_SCREENS: Record<string, string> = {
  token: 'tokens',
  card: 'tokens',
  bank: 'tokens',
  application: 'applications',
  reactor: 'reactors',
  threeds_session: '3ds',
  proxy: 'proxies',
  invitation: 'members',
  member: 'members',
  webhook: 'webhooks',
}
export const screenOf = (entityType: string): string | undefined => ENTITY_SCREENS[entityType]

/** The type of entity that an operation creates, by the first word of the operation. */
const CREATED: Record<string, string> = {
  token: 'token',
  app: 'application',
  reactor: 'reactor',
  proxy: 'proxy',
  '3ds': 'threeds_session',
  webhook: 'webhook',
}
export const createdBy = (operation = ''): string => CREATED[operation.split(' ')[0]!] ?? ''

const TITLES: Record<string, string> = { '3ds': '3-D Secure', access: 'Who sees what' }

export const titleOf = (screen: string) => TITLES[screen] ?? screen[0]!.toUpperCase() + screen.slice(1)

/** `isMove`: the address replaces the current entry of the history, so that moves between rows add no entries. */
export function go(href: string, isMove = false): void {
  if (!isMove) location.hash = href
  else {
    history.replaceState(null, '', href)
    dispatchEvent(new HashChangeEvent('hashchange'))
  }
}

export function setFilter({ screen, id, filters }: Route, name: string, value: string): void {
  go(linkTo(screen, id, { ...filters, [name]: value }), true)
}
