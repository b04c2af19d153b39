/** Sends the requests of the page to the server, and caches answers about the vault. */

import { createContext } from 'preact'
import { useContext, useEffect, useLayoutEffect, useMemo, useState } from 'preact/hooks'
import type { FoundTokens } from '../control/find-tokens.js'
import type { SessionDetail, SessionList } from '../control/page-threeds.js'
import type { TracedLogs, Trail } from '../control/page-trail.js'
import type { Access, Facts, News, PageSession } from '../control/page-work.js'
import type { Problem } from '../errors.js'
import type { RequestRecord } from '../framework/ports/control.js'
import type { OperationName, ResultOf } from '../operations/all.js'
import type { Route } from './route.js'

const POLL_MS = 1000

type Place = { tenant?: string; fork?: string }
/** `number`: how many requests the server recorded before this request, since its start. */
export type Seen = RequestRecord & { number: number }

/** All tabs share the secret of the session. Pages of other ports cannot read local storage of this port. */
const KEPT_SECRET = 'coffer-page-secret'

async function send(path: string, body?: object): Promise<unknown> {
  // Another tab may have signed in, so each request reads the secret.
  const secret = localStorage.getItem(KEPT_SECRET)
  const headers = {
    'content-type': 'application/json',
    ...(secret !== null && { 'coffer-page-secret': secret }),
  }
  const init = body === undefined ? { headers } : { method: 'POST', body: JSON.stringify(body), headers }
  const answer = await fetch(`/_dashboard/${path}`, init).catch(() => {
    throw new Error('The server does not answer. It may have stopped.')
  })
  const text = await answer.text()
  const result: unknown = text === '' ? undefined : JSON.parse(text)
  if (answer.ok) return result
  const { detail, title, errors } = (result ?? {}) as Partial<Problem>
  const message = detail ?? title ?? `The server answered ${answer.status}.`
  throw Object.assign(new Error(message), { status: answer.status, errors })
}

export async function signIn(login: string): Promise<void> {
  const { page_secret } = (await send('session', { login })) as { page_secret: string }
  localStorage.setItem(KEPT_SECRET, page_secret)
}

export const readSession = () => send('session') as Promise<PageSession | { is_signed_in: false }>

function createServer(place: Place) {
  const ask = (body: object) => send('ask', { ...body, ...place })
  return {
    read: <Name extends OperationName>(operation: Name, input: object = {}) =>
      ask({ operation, input }) as Promise<ResultOf<Name>>,
    readNews: (after: number, version: string | undefined) => ask({ after, version }) as Promise<News>,
    /** Forks belong to the vault, so the shown fork is not part of the request. */
    deleteFork: (id: string) => send('ask', { operation: 'control fork delete', input: { id } }),
    listSessions: () => ask({ threeds: {} }) as Promise<SessionList>,
    readSession: (id: string) => ask({ threeds: { id } }) as Promise<SessionDetail>,
    readTrail: (trail: object) => ask({ trail }) as Promise<Trail>,
    readLog: (log: object) => ask({ log }) as Promise<TracedLogs>,
    findTokens: (find: { text: string; query: string }) => ask({ find }) as Promise<FoundTokens>,
    dryRun: (access: object) => ask({ access }) as Promise<Access[]>,
    /** If `application` is absent, the grants of `key` are used. */
    sendRequest: (request: object) => ask({ request }) as Promise<RequestRecord>,
  }
}

/** This tab shows the same tenant or fork after a reload. */
const KEPT_PLACE = 'coffer-page-place'
const readPlace = (): Place => JSON.parse(sessionStorage.getItem(KEPT_PLACE) ?? '{}') as Place

interface Known {
  /** Newest first. Undefined until the first answer of the server. */
  requests?: Seen[]
  news?: News
  facts?: Facts
  /** Defined while the server does not answer, or after the session has ended. */
  lost?: { since: number; isSignedOut: boolean }
}

/** Polls the server once a second while the page is visible. */
export function useNews(session: PageSession) {
  const [place, choosePlace] = useState(readPlace)
  const setPlace = (next: Place) => {
    sessionStorage.setItem(KEPT_PLACE, JSON.stringify(next))
    choosePlace(next)
  }
  const server = useMemo(() => createServer(place), [place])
  const [known, setKnown] = useState<Known>({})
  const [round, setRound] = useState(0)
  useEffect(() => {
    const state = { count: 0, isOver: false, isBusy: false, version: undefined as string | undefined }
    setKnown({})
    const look = async () => {
      if (document.hidden || state.isBusy) return
      state.isBusy = true
      try {
        const news = await server.readNews(state.count, state.version)
        if (state.isOver) return
        const start = news.count - news.records.length
        const made = news.records.map((record, at) => ({ ...record, number: start + at })).reverse()
        // A smaller count than before means that the server was restarted.
        const isNew = news.count < state.count
        state.count = isNew ? 0 : news.count
        state.version = news.version
        setKnown(({ requests: old = [], facts }) => {
          const kept = isNew ? [] : old.filter(({ number }) => number >= news.first)
          const isSame = made.length === 0 && kept.length === old.length
          return { requests: isSame ? old : [...made, ...kept], news, facts: news.facts ?? facts } as Known
        })
      } catch (caught) {
        const { status } = caught as { status?: number }
        // The fork or tenant no longer exists.
        if (status === 404 && !state.isOver && Object.keys(place).length > 0) setPlace({})
        const isSignedOut = status === 401
        const lose = ({ lost, ...before }: Known): Known => ({
          ...before,
          lost: { since: lost?.since ?? Date.now(), isSignedOut },
        })
        if (!state.isOver) setKnown(lose)
      } finally {
        state.isBusy = false
      }
    }
    void look()
    const timer = setInterval(look, POLL_MS)
    return () => {
      state.isOver = true
      clearInterval(timer)
    }
  }, [server])
  // A change of `round` makes all components read their data again.
  const ask: typeof server.read = (operation, input) =>
    server.read(operation, input).finally(() => setRound((now) => now + 1))
  return { ...server, ...known, ask, round, session, place, setPlace }
}

const LiveContext = createContext<ReturnType<typeof useNews>>(undefined as never)
export const LiveProvider = LiveContext.Provider
export const useLive = () => useContext(LiveContext)

const RouteContext = createContext<Route>(undefined as never)
export const RouteProvider = RouteContext.Provider
export const useRoute = () => useContext(RouteContext)

/** The returned function also describes a deleted application or member: `deleted application ab12…`. */
export function useNameOf(): (id?: string, type?: string) => string {
  const { facts } = useLive()
  return (id, type = 'application') =>
    id === undefined ? 'no key' : (facts?.actors[id] ?? `deleted ${type} ${id.slice(0, 4)}…`)
}

const KEY_STATES = { none: 'no key', unknown: 'unknown key', not_examined: 'key not examined' }

/** The returned function returns the name of the application, or the reason why the request has no application. */
export function useCallerOf(): (request: Seen) => string {
  const nameOf = useNameOf()
  return ({ application_id, key_state, key_header }) => {
    if (application_id !== undefined || key_state === undefined) return nameOf(application_id)
    return key_state === 'none' && key_header ? `key in ${key_header}` : KEY_STATES[key_state]
  }
}

export interface Asked<T> {
  result?: T
  error?: string
}

/**
 * Repeats a read, one at a time. If data changes during a read, the answer of the read is shown before the next read.
 * Otherwise the page would never show an answer about a busy vault on a slow network.
 */
function createRepeater<T>(read: () => Promise<T>, show: (asked: Asked<T>) => void) {
  let isBusy = false
  let isStale = false
  let isOver = false
  return {
    async run() {
      isStale = true
      if (isBusy) return
      isBusy = true
      while (isStale && !isOver) {
        isStale = false
        const asked = await read().then(
          (result): Asked<T> => ({ result }),
          (error: Error): Asked<T> => ({ error: error.message }),
        )
        if (!isOver) show(asked)
      }
      isBusy = false
    },
    stop() {
      isOver = true
    },
  }
}

/**
 * Reads again when the vault, the tenant, the stored data or `version` changes. `of` identifies the data: when `of`
 * changes, answers of earlier reads are dropped.
 */
export function useRead<T>(
  of: string,
  read: (server: ReturnType<typeof useLive>) => Promise<T>,
  version: number | undefined = 0,
): Asked<T> {
  const live = useLive()
  const [state, setState] = useState<Asked<T>>({})
  const show = (asked: Asked<T>) =>
    setState((shown) => ({ ...shown, error: undefined, ...asked }) as Asked<T>)
  const repeater = useMemo(() => createRepeater(() => read(live), show), [live.read, of])
  useEffect(() => repeater.stop, [repeater])
  useEffect(() => void repeater.run(), [repeater, live.news?.version, live.round, version])
  return state
}

/** Performs an operation again when the input, the vault, the tenant or the stored data changes. */
export function useAsked<Name extends OperationName>(operation: Name, input: object = {}) {
  const { news } = useLive()
  // Reading a token does not change the version in the news, but adds a log record. Therefore the log is read again
  // after each request.
  const version = operation === 'log list' ? news?.count : 0
  return useRead(`${operation} ${JSON.stringify(input)}`, ({ read }) => read(operation, input), version)
}

export function useAction() {
  const [error, setError] = useState<string>()
  const act = async (work: () => unknown): Promise<boolean> => {
    try {
      await work()
      setError(undefined)
      return true
    } catch (caught) {
      setError((caught as Error).message)
      return false
    }
  }
  return { act, error }
}

/** `hear` always sees the current state of the component. */
export function useEvent(name: string, hear: (event: never) => void): void {
  useLayoutEffect(() => {
    addEventListener(name, hear as (event: Event) => void)
    return () => removeEventListener(name, hear as (event: Event) => void)
  })
}
