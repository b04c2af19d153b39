/** Asks the server of the page, and keeps what it knows of the vault. */
import { createContext } from 'preact'
import { useContext, useEffect, useMemo, useState } from 'preact/hooks'
import type { Problem } from '../errors.js'
import type { RequestRecord } from '../framework/ports/control.js'
import type { Access, Facts, News, PageSession } from '../framework/ports/page.js'
import type { OperationName, ResultOf } from '../operations/all.js'

const POLL_MS = 1000

export type Place = { tenant?: string; fork?: string }
/** `number`: of all requests since the server began. */
export type Seen = RequestRecord & { number: number }
export type Sent = Pick<RequestRecord, 'method'> & {
  target: string
  type?: string | undefined
  body?: string | undefined
  /** Whose grants decide; without it, `key` does. */
  application?: string | undefined
  key?: string | undefined
}

class Refused extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

async function send(path: string, body?: object): Promise<unknown> {
  const headers = { 'content-type': 'application/json' }
  const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body), headers }
  const answer = await fetch(`/_dashboard/${path}`, init)
  const text = await answer.text()
  const result: unknown = text === '' ? undefined : JSON.parse(text)
  if (answer.ok) return result
  const { detail, title } = (result ?? {}) as Partial<Problem>
  throw new Refused(answer.status, detail ?? title ?? `The server answered ${answer.status}.`)
}

export const signIn = (login: string) => send('session', { login })
export const readSession = () => send('session') as Promise<PageSession | { is_signed_in: false }>

function createServer(place: Place) {
  const ask = (body: object) => send('ask', { ...body, ...place })
  return {
    ask: <Name extends OperationName>(operation: Name, input: object = {}) =>
      ask({ operation, input }) as Promise<ResultOf<Name>>,
    readNews: (after: number, version: string | undefined) => ask({ after, version }) as Promise<News>,
    dryRun: (access: object) => ask({ access }) as Promise<Access[]>,
    sendRequest: (request: Sent) => ask({ request }) as Promise<RequestRecord>,
  }
}

interface Known {
  /** Newest first; undefined until they are known. */
  requests?: Seen[]
  news?: News
  facts?: Facts
  /** Since when the server does not answer, or that the session has ended. */
  lost?: { since: number; isSignedOut: boolean }
}

export type Live = ReturnType<typeof createServer> &
  Known & { session: PageSession; place: Place; setPlace(place: Place): void }

/** Asks the server once a second for everything that is new, while the page is visible. */
export function useNews(session: PageSession): Live {
  const [place, setPlace] = useState<Place>({})
  const server = useMemo(() => createServer(place), [place])
  const [known, setKnown] = useState<Known>({})
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
        // The server was restarted.
        const isNew = news.count < state.count
        state.count = isNew ? 0 : news.count
        state.version = news.version
        setKnown(({ requests: old = [], facts }) => {
          const kept = isNew ? [] : old.filter(({ number }) => number >= news.first)
          const isSame = made.length === 0 && kept.length === old.length
          return { requests: isSame ? old : [...made, ...kept], news, facts: news.facts ?? facts } as Known
        })
      } catch (caught) {
        const isSignedOut = caught instanceof Refused && caught.status === 401
        if (!state.isOver)
          setKnown((before) => ({
            ...before,
            lost: { since: before.lost?.since ?? Date.now(), isSignedOut },
          }))
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
  return { ...server, ...known, session, place, setPlace }
}

const LiveContext = createContext<Live>(undefined as never)
export const LiveProvider = LiveContext.Provider
export const useLive = () => useContext(LiveContext)

/** The name of who acted; a deleted application has none any more. */
export function useNameOf(): (id?: string, type?: string) => string {
  const { facts } = useLive()
  return (id, type = 'application') =>
    id === undefined ? 'no key' : (facts?.actors[id] ?? `deleted ${type} ${id.slice(0, 4)}…`)
}

export interface Asked<T> {
  result?: T
  error?: string
}

/** The answer of the operation; asked again when the input, the place or what is stored changes. */
export function useAsked<Name extends OperationName>(
  operation: Name,
  input: object = {},
): Asked<ResultOf<Name>> {
  const { ask, news } = useLive()
  const [state, setState] = useState<Asked<ResultOf<Name>>>({})
  const version = operation === 'log list' ? `${news?.version} ${news?.count}` : news?.version
  useEffect(() => {
    let isOver = false
    ask(operation, input).then(
      (result) => isOver || setState({ result }),
      (error: Error) => isOver || setState({ error: error.message }),
    )
    return () => {
      isOver = true
    }
  }, [ask, operation, JSON.stringify(input), version])
  return state
}

/** Performs something, and says what failed. */
export function useAction() {
  const [error, setError] = useState<string>()
  const act = async (work: () => Promise<unknown>): Promise<boolean> => {
    const failed = await work().then(
      () => undefined,
      (caught: Error) => caught.message,
    )
    setError(failed)
    return failed === undefined
  }
  return { act, error }
}

/** Hears an event of the window, with the present state. */
export function useEvent(name: string, hear: (event: Event) => void): void {
  useEffect(() => {
    addEventListener(name, hear)
    return () => removeEventListener(name, hear)
  })
}
