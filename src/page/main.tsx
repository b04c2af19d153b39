/** The page at `/`: the reference, and for signed-in users the activity of this server. */
import { render } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { createLive, LiveContext, type Place, readSession, type Session, signIn } from './api.js'
import { Controls } from './controls.js'
import { Applications, Log, Outbox, Tokens } from './lists.js'
import { Fault } from './parts.js'
import { Reactors } from './reactors.js'
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
  const name = location.hash.replace(/^#\//, '')
  if (location.hash.startsWith('#/') && Object.hasOwn(VIEWS, name)) return name as ViewName
  return isFirst && location.hash === '' ? 'requests' : undefined
}

function Page({ session }: { session: Session }) {
  const [view, setView] = useState(() => readView(true))
  const [place, setPlace] = useState<Place>({})
  const live = useMemo(() => createLive(session, place), [session, place])
  useEffect(() => {
    const turn = () => setView(readView(false))
    addEventListener('hashchange', turn)
    return () => removeEventListener('hashchange', turn)
  }, [])
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
  return (
    <LiveContext.Provider value={live}>
      <nav aria-label="Views" class="views">
        {names.map((name) => (
          <a key={name} href={`#/${name}`} aria-current={view === name ? 'page' : undefined}>
            {name}
          </a>
        ))}
        <a href="#reference" aria-current={view === undefined ? 'page' : undefined}>
          reference
        </a>
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
      {View !== undefined && (
        <main>
          <View />
        </main>
      )}
    </LiveContext.Provider>
  )
}

async function start(): Promise<void> {
  const live = document.createElement('div')
  reference.before(live)
  enhanceReference(reference)
  const [, login] = /^#login=(.+)$/.exec(location.hash) ?? []
  // Keeps the login out of the history and bookmarks.
  if (login !== undefined) history.replaceState(null, '', location.pathname)
  const fault = login === undefined ? undefined : await signIn(login).then(noFault, messageOf)
  // A server for other machines has only the reference.
  const session = await readSession().catch(() => undefined)
  if (session?.is_signed_in) render(<Page session={session} />, live)
  else if (fault !== undefined)
    render(
      <aside>
        <Fault text={fault} />
      </aside>,
      live,
    )
  else if (session !== undefined)
    render(
      <aside class="dim">
        To see here what happens on this server, open the address that <code>coffer serve</code> printed, or
        one of <code>coffer control page</code>.
      </aside>,
      live,
    )
}

const noFault = () => undefined
const messageOf = (error: Error) => error.message

void start()
