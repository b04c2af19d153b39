import { type ComponentChildren, render } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { createLive, LiveProvider, type Place, readSession, type Session, signIn } from './api.js'
import { Controls } from './controls.js'
import { Applications, Log, Outbox, Reactors, Tokens } from './lists.js'
import { Fault } from './parts.js'
import { enhanceReference } from './reference.js'
import { Requests } from './requests.js'

const VIEWS = {
  requests: Requests,
  tokens: Tokens,
  applications: Applications,
  reactors: Reactors,
  log: Log,
  outbox: Outbox,
  controls: Controls,
}
type ViewName = keyof typeof VIEWS

const reference = document.querySelector<HTMLElement>('#reference')!

function readView(isFirst: boolean): ViewName | undefined {
  const [, name = ''] = /^#\/(.*)$/.exec(location.hash) ?? []
  if (Object.hasOwn(VIEWS, name)) return name as ViewName
  return isFirst && location.hash === '' ? 'requests' : undefined
}

function Page({ session }: { session: Session }) {
  const [view, setView] = useState(() => readView(true))
  const [place, setPlace] = useState<Place>({})
  const live = useMemo(() => createLive(session, place), [session, place])
  useEffect(() => addEventListener('hashchange', () => setView(readView(false))), [])
  useEffect(() => {
    reference.hidden = view !== undefined
    document.title = view === undefined ? 'Coffer' : `Coffer: ${view}`
  }, [view])
  const View = view && VIEWS[view]
  const names = Object.keys(VIEWS).filter((name) => name !== 'controls' || session.controls.faults)
  const places = [
    // The server lists the newest tenant first, but its default is the oldest.
    ...session.tenants.toReversed().map(({ id, name }) => ({ label: name, place: { tenant: id } })),
    ...session.forks.map((fork) => ({ label: `fork ${fork.slice(0, 8)}`, place: { fork } })),
  ]
  const link = (name: string, href: string, isCurrent: boolean) => (
    <a key={name} href={href} aria-current={isCurrent ? 'page' : undefined}>
      {name}
    </a>
  )
  return (
    <LiveProvider value={live}>
      <nav aria-label="Views" class="views">
        {names.map((name) => link(name, `#/${name}`, view === name))}
        {link('reference', '#reference', view === undefined)}
        {places.length > 1 && (
          <label>
            Tenant{' '}
            <select onChange={(event) => setPlace(places[event.currentTarget.selectedIndex]?.place ?? {})}>
              {places.map(({ label }) => (
                <option key={label}>{label}</option>
              ))}
            </select>
          </label>
        )}
      </nav>
      {View && (
        <main>
          <View />
        </main>
      )}
    </LiveProvider>
  )
}

async function start(): Promise<void> {
  const live = document.createElement('div')
  const show = (content: ComponentChildren) => render(content, live)
  reference.before(live)
  enhanceReference(reference)
  const [, login] = /^#login=(.+)$/.exec(location.hash) ?? []
  // Keeps the login out of the history and bookmarks.
  if (login !== undefined) history.replaceState(null, '', location.pathname)
  const fault = login && (await signIn(login).then(String, (error: Error) => error))
  // A server for other machines has only the reference.
  const session = await readSession().catch(() => undefined)
  if (session?.is_signed_in) return show(<Page session={session} />)
  if (fault instanceof Error) return show(<Fault text={fault.message} />)
  if (session === undefined) return
  show(
    <aside class="dim">
      To see here what happens on this server, open the address that <code>coffer serve</code> printed, or one
      of <code>coffer control page</code>.
    </aside>,
  )
}

void start()
