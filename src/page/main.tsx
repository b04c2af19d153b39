import { type ComponentChildren, render } from 'preact'
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'
import type { PageSession } from '../control/page-work.js'
import { AccessMatrix } from './access.js'
import { LiveProvider, RouteProvider, readSession, signIn, useEvent, useLive, useNews } from './api.js'
import { Applications } from './applications.js'
import { Controls } from './controls.js'
import { Check, Dialog, DialogProvider, Failure } from './forms.js'
import { Chips, Header, Navigation, Places, Theme, Tool, useEscape, useKeys } from './frame.js'
import { useKept } from './kept.js'
import { Outbox, Webhooks } from './lists.js'
import { Log } from './log.js'
import { Members } from './members.js'
import { Facts, Loading } from './parts.js'
import { Proxies } from './proxies.js'
import { Reactors } from './reactors.js'
import { type Document, DocumentProvider, Reference } from './reference.js'
import { Requests } from './requests.js'
import { go, linkTo, readRoute, titleOf } from './route.js'
import { Tenant } from './tenant.js'
import { formatTime, Terminal } from './text.js'
import { ThreeDs } from './threeds.js'
import { Tokens } from './tokens.js'

const SCREENS = {
  requests: Requests,
  tokens: Tokens,
  applications: Applications,
  access: AccessMatrix,
  reactors: Reactors,
  proxies: Proxies,
  webhooks: Webhooks,
  '3ds': ThreeDs,
  log: Log,
  outbox: Outbox,
  members: Members,
  tenant: Tenant,
  controls: Controls,
  reference: Reference,
}
const NAMES = Object.keys(SCREENS) as (keyof typeof SCREENS)[]

const DIGITS = 10

const KEYS: Record<string, string> = {
  'j k': 'Next row, previous row',
  Enter: 'Open the row; its address is a permalink',
  Esc: 'Close the detail or the dialog, leave the field',
  '/': 'Find',
  '1 … 9 0': `Go to one of the first ${DIGITS} screens, in the order of the menu`,
  e: 'Requests: edit and send',
  n: 'Tokens: new token',
  '← →': 'Other tab',
  '?': 'This list',
}

const KEPT_ADDRESS = 'coffer-page-address'

const isLogin = () => location.hash.startsWith('#login=')

function useRoute() {
  const [route, setRoute] = useState(readRoute)
  // Ignores sign-in links, because the page would forget the address to return to.
  useEvent('hashchange', () => !isLogin() && setRoute(readRoute()))
  return route
}

function Page({ session }: { session: PageSession }) {
  const live = useNews(session)
  const route = useRoute()
  const [single, setSingle] = useKept('keys', 'on')
  const [dialog, show] = useState<ComponentChildren>()
  const screen = NAMES.find((name) => name === route.screen) ?? 'requests'
  const names = NAMES.filter((name) => name !== 'controls' || session.controls.faults)
  const showKeys = () =>
    show(<Keys areOn={single === 'on'} turn={(isOn) => setSingle(isOn ? 'on' : 'off')} />)
  useEscape()
  useKeys({
    '/': () => document.querySelector<HTMLElement>('main [type=search]')?.focus(),
    '?': showKeys,
    Escape: () => route.id !== undefined && go(linkTo(screen, undefined, route.filters)),
    ...Object.fromEntries(
      NAMES.slice(0, DIGITS).map((name, at) => [
        (at + 1) % 10,
        () => names.includes(name) && go(linkTo(name)),
      ]),
    ),
  })
  // A layout effect runs before the next key event. The effect closes the old dialog before a key can open a dialog of
  // the new screen.
  useLayoutEffect(() => {
    document.title = [route.id, titleOf(screen), 'Coffer'].filter(Boolean).join(' · ')
    localStorage.setItem(KEPT_ADDRESS, linkTo(screen, route.id, route.filters))
    show(undefined)
  }, [screen, route.id])
  const View = SCREENS[screen]
  return (
    <LiveProvider value={live}>
      <RouteProvider value={{ ...route, screen }}>
        <DialogProvider value={show}>
          <Header about={session}>
            <Chips />
            <div class="row">
              <Places />
              <Theme />
              <Tool name="Keyboard keys" text="?" act={showKeys} />
            </div>
          </Header>
          <Navigation names={names} current={screen} />
          <main id="main" tabIndex={-1}>
            <Lost />
            <Unknown screen={route.screen} />
            <View key={screen + JSON.stringify(live.place)} />
          </main>
          {dialog}
        </DialogProvider>
      </RouteProvider>
    </LiveProvider>
  )
}

function Keys({ areOn, turn }: { areOn: boolean; turn(isOn: boolean): void }) {
  const [isOn, setOn] = useState(areOn)
  return (
    <Dialog title="Keyboard keys">
      <Facts of={KEYS} />
      <Check label="Use keys without Ctrl or Alt" isOn={isOn} turn={(to) => [setOn(to), turn(to)]} />
      <form>
        <button type="reset" class="primary">
          Close
        </button>
      </form>
    </Dialog>
  )
}

function Lost() {
  const { lost } = useLive()
  if (lost === undefined) return null
  const from = formatTime(new Date(lost.since).toISOString())
  const text = lost.isSignedOut
    ? 'You are signed out. Get a new sign-in link: coffer control page'
    : `The server does not answer. It may have stopped. The page tries again. Until then, the page shows the data of ${from} UTC.`
  return <Failure text={text} />
}

function Unknown({ screen }: { screen: string }) {
  if (screen === '' || NAMES.some((name) => name === screen)) return null
  return (
    <div class="note warn" role="status">
      There is no screen “{screen}”. This is the screen {titleOf('requests')}.
    </div>
  )
}

function Alone({ fault }: { fault?: string | undefined }) {
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
            To see what happens on this server, open the sign-in link that it printed, or get a new one:
          </p>
          <Terminal text="coffer control page" />
        </div>
      </nav>
      <main id="main" tabIndex={-1}>
        <RouteProvider value={{ ...useRoute(), screen: 'reference' }}>
          <Reference />
        </RouteProvider>
      </main>
    </>
  )
}

/** `session`: undefined if nobody is signed in. */
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
  // If a sign-in link is opened in the tab of the page, only the hash changes, and the browser does not reload the
  // page.
  addEventListener('hashchange', () => isLogin() && location.reload())
  const [, login] = /^#login=(.+)$/.exec(location.hash) ?? []
  // Removes the secret of the link from the address, so that the history and bookmarks never contain the secret. The
  // page then opens the address that this browser showed last.
  if (login !== undefined)
    history.replaceState(null, '', location.pathname + (localStorage.getItem(KEPT_ADDRESS) ?? ''))
  render(<Loading isOn />, document.getElementById('page')!)
  const fault =
    login &&
    (await signIn(login).then(
      () => undefined,
      (error: Error) => error.message,
    ))
  // A server for other machines has no sessions, so the page shows only the reference.
  const session = await readSession().catch(() => undefined)
  render(
    <App session={session?.is_signed_in ? session : undefined} fault={fault} />,
    document.getElementById('page')!,
  )
}

void start()
