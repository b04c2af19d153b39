import { createContext } from 'preact'
import { useContext, useEffect, useState } from 'preact/hooks'
import type { Problem } from '../errors.js'
import type { RequestRecord } from '../framework/ports/control.js'
import type { OperationName, ResultOf } from '../operations/all.js'

export interface Session {
  is_signed_in: true
  header: string
  tenants: { id: string; name: string }[]
  forks: string[]
  controls: { faults: boolean; state: boolean }
}

export type Place = { tenant?: string; fork?: string }

async function send(path: string, body?: object): Promise<unknown> {
  const headers = { 'content-type': 'application/json' }
  const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body), headers }
  const answer = await fetch(`/_dashboard/${path}`, init)
  const text = await answer.text()
  const result: unknown = text === '' ? undefined : JSON.parse(text)
  if (answer.ok) return result
  const { detail, title } = (result ?? {}) as Partial<Problem>
  throw new Error(detail ?? title ?? `The server answered ${answer.status}.`)
}

export const signIn = (login: string) => send('session', { login })
export const readSession = () => send('session') as Promise<Session | { is_signed_in: false }>

export const createLive = (session: Session, place: Place) => ({
  session,
  ask: <Name extends OperationName>(operation: Name, input: object = {}) =>
    send('ask', { operation, input, ...place }) as Promise<ResultOf<Name>>,
  requestsAfter: (after: number) =>
    send('ask', { after, ...place }) as Promise<{ count: number; first: number; records: RequestRecord[] }>,
})

const LiveContext = createContext<ReturnType<typeof createLive>>(undefined as never)
export const LiveProvider = LiveContext.Provider
export const useLive = () => useContext(LiveContext)

export interface Asked<T> {
  result?: T
  error?: string
  again(): void
}

/** The answer of the operation; asked again when the input or the tenant changes. */
export function useAsked<Name extends OperationName>(
  operation: Name,
  input: object = {},
): Asked<ResultOf<Name>> {
  const live = useLive()
  const [state, setState] = useState<{ result?: ResultOf<Name>; error?: string }>({})
  const [round, setRound] = useState(0)
  useEffect(() => {
    let isOver = false
    live.ask(operation, input).then(
      (result) => isOver || setState({ result }),
      (error: Error) => isOver || setState({ error: error.message }),
    )
    return () => {
      isOver = true
    }
  }, [live, operation, JSON.stringify(input), round])
  return { ...state, again: () => setRound(round + 1) }
}
