import { render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { PageSession } from '../framework/ports/page.js'
import { type Live, LiveProvider, readSession, signIn, useNews } from './api.js'
import { Applications } from './applications.js'
import { Controls } from './controls.js'
import { Dialog, Failure } from './forms.js'
import { Chips, Header, Navigation, Places, Theme, titleOf, useKept, useKeys } from './frame.js'
import { Log, Outbox, Webhooks } from './lists.js'
import { Facts, formatTime, Terminal } from './parts.js'
import { Reactors } from './reactors.js'
import { type Document, DocumentProvider, Reference } from './reference.js'
import { EDIT } from './request.js'
import { Requests } from './requests.js'
import { go, linkTo, readRoute } from './route.js'
import { MOVE } from './rows.js'
import { NEW, Tokens } from './tokens.js'

const SCREENS = {
  requests: Requests,
  tokens: Tokens,
  applications: Applications,
  reactors: Reactors,
  webhooks: Webhooks,
  log: Log,
  outbox: Outbox,
  controls: Controls,
  reference: Reference,
}
type Name = keyof typeof SCREENS
const NAMES = Object.keys(SCREENS) as Name[]

function useRoute() {
  const [route, setRoute] = useState(readRoute)
  useEffect(() => {
    const read = () => setRoute(readRoute())
    addEventListener('hashchange', read)
    return () => removeEventListener('hashchange', read)
  }, [])
  const screen = (NAMES as string[]).includes(route.screen) ? (route.screen as Name) : 'requests'
  return { ...route, screen }
}

const KEYS: Record<string, string> = {
  'j k': 'Next row, row before',
  Enter: 'Open the row; its address is a permalink',
  Esc: 'Close the detail or the dialog, leave the field',
  '/': 'Find',
  '1 … 9': 'Go to a screen',
  e: 'Requests: edit and send',
  n: 'Tokens: new token',
  '← →': 'Other tab',
  '?': 'This list',
}

function Page({ session }: { session: PageSession }) {
  const live = useNews(session)
  const route = useRoute()
  const [single, setSingle] = useKept('keys', 'on')
  const [areKeysShown, setKeysShown] = useState(false)
  const { screen, id, filters } = route
  const names = NAMES.filter((name) => name !== 'controls' || session.controls.faults)
  const move = (by: number) => dispatchEvent(new CustomEvent(MOVE, { detail: by }))
  const keys: Record<string, () => unknown> = {
    j: () => move(1),
    k: () => move(-1),
    '/': () => document.querySelector<HTMLElement>('main [type=search]')?.focus(),
    '?': () => setKeysShown(true),
    e: () => dispatchEvent(new Event(EDIT)),
    n: () => dispatchEvent(new Event(NEW)),
    Escape: () => id !== undefined && go(linkTo(screen, undefined, filters)),
    ...Object.fromEntries(NAMES.map((name, at) => [at + 1, () => names.includes(name) && go(linkTo(name))])),
  }
  useKeys(keys, single === 'on')
  useEffect(() => {
    document.title = `${titleOf(screen)} · Coffer`
  }, [screen])
  const View = SCREENS[screen]
  return (
    <LiveProvider value={live}>
      <Header about={session}>
        <Chips live={live} />
        <div class="row">
          <Places live={live} />
          <Theme />
          <button
            type="button"
            class="quiet"
            aria-label="Keyboard keys"
            title="Keyboard keys"
            onClick={() => setKeysShown(true)}
          >
            ?
          </button>
        </div>
      </Header>
      <Navigation names={names} current={screen} live={live} />
      <main id="main" tabIndex={-1}>
        <Lost live={live} />
        <View key={screen + JSON.stringify(live.place)} route={route} />
      </main>
      {areKeysShown && (
        <Dialog title="Keyboard keys" close={() => setKeysShown(false)}>
          <Facts of={KEYS} />
          <label>
            <input
              type="checkbox"
              checked={single === 'on'}
              onChange={(event) => setSingle(event.currentTarget.checked ? 'on' : 'off')}
            />
            Keys without Ctrl or Alt act
          </label>
          <form>
            <button type="reset" class="primary">
              Close
            </button>
          </form>
        </Dialog>
      )}
    </LiveProvider>
  )
}

function Lost({ live: { lost } }: { live: Live }) {
  if (lost === undefined) return null
  const from = formatTime(new Date(lost.since).toISOString())
  const text = lost.isSignedOut
    ? 'You are signed out. Open an address of: coffer control page'
    : `The server does not answer. The page tries again. What is below is from ${from}.`
  return <Failure text={text} />
}

function Alone({ fault }: { fault?: string | undefined }) {
  const route = useRoute()
  return (
    <>
      <Header about={{}}>
        <span class="push" />
        <Theme />
      </Header>
      <nav class="nav" aria-label="Sign in">
        <div class="stack">
          <Failure text={fault} />
          <p class="dim small">
            To see what happens on this server, open the address that it printed, or one of:
          </p>
          <Terminal text="coffer control page" />
        </div>
      </nav>
      <main id="main" tabIndex={-1}>
        <Reference route={{ ...route, screen: 'reference' }} isAlone />
      </main>
    </>
  )
}

/** `session`: absent if nobody is signed in. */
function App({ session, fault }: { session?: PageSession | undefined; fault?: string | undefined }) {
  const [described, setDescribed] = useState<Document>()
  useEffect(() => {
    void fetch('/openapi.json').then(async (answer) => setDescribed((await answer.json()) as Document))
  }, [])
  return (
    <DocumentProvider value={described}>
      {session ? <Page session={session} /> : <Alone fault={fault} />}
    </DocumentProvider>
  )
}

async function start(): Promise<void> {
  const [, login] = /^#login=(.+)$/.exec(location.hash) ?? []
  // Keeps the login out of the history and bookmarks.
  if (login !== undefined) history.replaceState(null, '', location.pathname)
  const fault =
    login &&
    (await signIn(login).then(
      () => undefined,
      (error: Error) => error.message,
    ))
  // A server for other machines has only the reference.
  const session = await readSession().catch(() => undefined)
  render(
    <App session={session?.is_signed_in ? session : undefined} fault={fault} />,
    document.getElementById('page')!,
  )
}

void start()
