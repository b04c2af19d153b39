/**
 * The records that a run has created. The run may change and delete only these records. A server that deduplicates can
 * answer the creation of a token with an older token. Therefore a token belongs to the run only if an application of
 * the run has created the token.
 */
import { type Answer, readPath } from './cases.js'

interface Kind {
  readonly delete: string
  /**
   * Tokens are deleted by an application of the run. Other records are deleted with the user's key, except intents and
   * documents, which have their own applications.
   */
  readonly isData: boolean
}

const TOKEN: Kind = { delete: 'token delete', isData: true }

const KINDS: Readonly<Record<string, Kind>> = {
  'app create': { delete: 'app delete', isData: false },
  'document create': { delete: 'document delete', isData: false },
  'formula create': { delete: 'formula delete', isData: false },
  'intent create': { delete: 'intent delete', isData: true },
  'key create': { delete: 'key delete', isData: false },
  'proxy create': { delete: 'proxy delete', isData: false },
  'reactor create': { delete: 'reactor delete', isData: false },
  'token create': TOKEN,
  'token create-child': TOKEN,
  'token tokenize': TOKEN,
}

export function createsTokens(operation: string): boolean {
  return KINDS[operation] === TOKEN
}

export interface OwnRecord extends Kind {
  readonly id: string
}

export class OwnRecords {
  /** The ids that paths may contain: ids of records of the run, and unused ids that the run has drawn. */
  readonly #ids = new Set<string>()
  readonly #applications = new Set<string>()
  readonly #pending = new Map<string, OwnRecord>()
  /** Tokens whose creator is unknown, because the answer did not name the creator. */
  readonly #unsure = new Set<string>()

  /** The records in the order of deletion: the latest first, because a record can refer only to earlier records. */
  get pending(): OwnRecord[] {
    return [...this.#pending.values()].reverse()
  }

  addDrawn(id: string): void {
    this.#ids.add(id)
  }

  addCreator(id: string): void {
    this.#applications.add(id)
  }

  isOwn(id: unknown): boolean {
    return typeof id === 'string' && this.#ids.has(id)
  }

  isCreator(id: unknown): boolean {
    return typeof id === 'string' && this.#applications.has(id)
  }

  isUnsure(id: string): boolean {
    return this.#unsure.has(id)
  }

  /** `strangers`: tokens that the run has not created. `unsure`: tokens whose creator is not known yet. */
  noteAnswer(operation: string, { status, body }: Answer): { strangers: string[]; unsure: string[] } {
    const none = { strangers: [], unsure: [] }
    if (typeof status !== 'number' || status < 200 || status > 299) return none
    const id = readPath(body, 'id')
    if (operation.startsWith('app ')) this.#noteKeys(operation, body)
    const kind = KINDS[operation]
    if (kind === undefined) return none
    if (kind === TOKEN) return this.#noteTokens(findTokens(body))
    if (typeof id !== 'string') return none
    if (operation === 'app create') this.#applications.add(id)
    this.#add({ ...kind, id })
    return none
  }

  /** Stores the creator of a token that was unsure. Returns whether the token belongs to the run. */
  noteCreator(id: string, creator: unknown): boolean {
    this.#unsure.delete(id)
    if (this.isCreator(creator)) this.#ids.add(id)
    else this.noteGone({ delete: TOKEN.delete, id })
    return this.isCreator(creator)
  }

  noteGone({ delete: operation, id }: Pick<OwnRecord, 'delete' | 'id'>): void {
    this.#pending.delete(`${operation} ${id}`)
  }

  #noteKeys(operation: string, body: unknown): void {
    if (operation === 'app key create') this.#addId(readPath(body, 'id'))
    const keys = readPath(body, 'keys')
    if (operation === 'app create' && Array.isArray(keys))
      for (const key of keys.slice(0, MAX_KEYS)) this.#addId(readPath(key, 'id'))
  }

  #addId(id: unknown): void {
    if (typeof id === 'string') this.#ids.add(id)
  }

  #noteTokens(tokens: readonly Token[]): { strangers: string[]; unsure: string[] } {
    const strangers = tokens.filter(
      ({ id, creator }) => creator !== undefined && !this.isCreator(creator) && !this.#pending.has(keyOf(id)),
    )
    const others = tokens.filter((each) => !strangers.includes(each))
    const unsure = others.filter(({ id, creator }) => creator === undefined && !this.#pending.has(keyOf(id)))
    for (const { id } of unsure) this.#unsure.add(id)
    for (const { id } of others) this.#add({ ...TOKEN, id })
    return { strangers: strangers.map(({ id }) => id), unsure: unsure.map(({ id }) => id) }
  }

  #add(record: OwnRecord): void {
    if (!this.isUnsure(record.id)) this.#ids.add(record.id)
    this.#pending.set(`${record.delete} ${record.id}`, record)
  }
}

const MAX_KEYS = 100
const keyOf = (id: string) => `${TOKEN.delete} ${id}`

interface Token {
  id: string
  creator: string | undefined
}

const MAX_DEPTH = 10
const MAX_TOKENS = 200

/** An answer to `tokenize` has tokens at any place: whole tokens, or only their ids. */
function findTokens(body: unknown): Token[] {
  const found: Token[] = []
  const visit = (value: unknown, depth: number): void => {
    if (found.length === MAX_TOKENS || depth > MAX_DEPTH) return
    if (typeof value === 'string') found.push({ id: value, creator: undefined })
    if (typeof value !== 'object' || value === null) return
    const id = readPath(value, 'id')
    const creator = readPath(value, 'created_by')
    if (typeof id === 'string') found.push({ id, creator: typeof creator === 'string' ? creator : undefined })
    else for (const each of Object.values(value)) visit(each, depth + 1)
  }
  visit(body, 0)
  return found
}
