/**
 * Runs cases against a server. A run creates the applications that it needs, and changes only records that it has
 * created. These records are deleted after each case, also after an interrupt.
 */
import { CofferError, interrupted } from '../../errors.js'
import type { RoutedOperation } from '../../framework/registry.js'
import type { Ask } from './ask-server.js'
import { type Answer, type Case, fillIn, readPath, type Step } from './cases.js'
import { checkAnswer } from './check-answer.js'
import { createsTokens, type OwnRecord, OwnRecords } from './own-records.js'
import { EFFECTS, listTexts, type Reason } from './safety.js'
import { showReceived } from './show-received.js'

/** The run ends if this many consecutive requests get no answer. */
const MAX_UNANSWERED = 3
const MAX_MS = 60 * 60_000
const SHOWN_CHARACTERS = 300

/** A signal that is never aborted, for work that must be completed even after an interrupt. */
const NEVER = new AbortController().signal

export interface Difference {
  case: string
  /** The number of the step in its case, from 1. */
  step: number
  operation: string
  difference: string
}

export interface Run {
  compared: Map<string, number>
  differences: Difference[]
  leftOut: { case: string; reason: Reason }[]
  remaining: Pick<OwnRecord, 'delete' | 'id'>[]
}

export interface PlannedCase extends Case {
  own: readonly string[]
}

export interface RunEffects {
  ask(request: Ask): Promise<Answer>
  find(operation: string): Promise<RoutedOperation | undefined>
  /** ms since the epoch. */
  clock(): number
  randomUuid(): string
  signal: AbortSignal
  show(count: number): Promise<void>
}

const TOKEN_RIGHTS = [
  'token:create',
  'token:read',
  'token:search',
  'token:update',
  'token:delete',
  'token:use',
] as const

/** The applications of a run. They make the calls that the owner of a vault makes in the cases. */
const APPLICATIONS = {
  masked: { rules: [ruleOf('mask')] },
  revealing: { rules: [ruleOf('reveal')] },
  intents: { permissions: ['token-intent:create', 'token-intent:read', 'token-intent:delete'] },
  threeds: { permissions: ['3ds:session:create', '3ds:session:read', '3ds:session:authenticate'] },
  documents: { permissions: ['documents:create', 'documents:read', 'documents:delete'] },
} as const

function ruleOf(transform: string) {
  return { description: 'all', priority: 1, container: '/', transform, permissions: TOKEN_RIGHTS }
}

/** This application reads who has created a token, and deletes tokens. */
const CREATOR = 'revealing'

type Role = keyof typeof APPLICATIONS | 'manager'

/** A management key cannot use tokens, and a key that uses tokens cannot manage other records. */
function roleOf({ operation, reveal }: Pick<Step, 'operation' | 'reveal'>): Role {
  if (operation.startsWith('intent ')) return 'intents'
  if (operation.startsWith('document ')) return 'documents'
  if (operation.startsWith('3ds ')) return 'threeds'
  const isData = /^(?:token|session) /.test(operation) || operation === 'reactor react'
  if (!isData) return 'manager'
  return reveal ? 'revealing' : 'masked'
}

/**
 * @throws CofferError `interrupted`; `forbidden` if the key may not create applications; `unavailable` if the server
 * does not answer. The message lists the records of the run that remain.
 */
export async function runCases(
  effects: RunEffects,
  cases: readonly PlannedCase[],
  key: string,
): Promise<Run> {
  const run = new CaseRun(effects, key)
  let failure: unknown
  try {
    await run.begin(cases)
    await run.runAll(cases)
  } catch (error) {
    failure = error
  }
  await run.cleanUp()
  if (failure === undefined) return run.result
  const { remaining } = run.result
  if (!(failure instanceof CofferError) || remaining.length === 0) throw failure
  throw new CofferError(failure.code, `${failure.message} ${describeRemaining(remaining)}`, {
    cause: failure,
  })
}

export function describeRemaining(remaining: Run['remaining']): string {
  const listed = remaining.slice(0, 20).map(({ delete: operation, id }) => `coffer ${operation} ${id}`)
  const which = listed.length < remaining.length ? `the first ${listed.length}` : 'them'
  return `Records that could not be deleted: ${remaining.length}. To delete ${which}: ${listed.join('; ')}`
}

class CaseRun {
  readonly result: Run = { compared: new Map(), differences: [], leftOut: [], remaining: [] }
  readonly #effects: RunEffects
  readonly #keys = new Map<Role, string>()
  /** Keys that the answers contained. A reported difference never shows these keys. */
  readonly #secrets = new Set<string>()
  readonly #mark: string
  readonly #startedMs: number
  readonly #base = new OwnRecords()
  #unanswered = 0

  constructor(effects: RunEffects, key: string) {
    this.#effects = effects
    this.#keys.set('manager', key)
    this.#secrets.add(key)
    this.#mark = effects.randomUuid().slice(0, 8)
    this.#startedMs = effects.clock()
  }

  /**
   * A server that does not know the permissions of an application answers 400. The calls of this application are then
   * not sent.
   */
  async begin(cases: readonly PlannedCase[]): Promise<void> {
    const needed = new Set<string>(cases.flatMap(({ steps }) => steps.map(roleOf)))
    for (const [role, rights] of Object.entries(APPLICATIONS)) {
      if (!needed.has(role) && role !== CREATOR) continue
      const name = `coffer conform ${this.#mark} ${role}`
      const input = { name, type: 'private', ...rights }
      const answer = await this.#send('app create', input, this.#keys.get('manager')!)
      this.#base.noteAnswer('app create', answer)
      if (this.#effects.signal.aborted) throw interrupted()
      const given = readPath(answer.body, 'key')
      if (answer.status === 400 && role !== CREATOR) continue
      if (answer.status === 401 || answer.status === 403)
        throw new CofferError(
          'forbidden',
          'This key may not create applications. Use a management key with all permissions.',
        )
      if (typeof given !== 'string' || typeof readPath(answer.body, 'id') !== 'string')
        throw new CofferError(
          'unavailable',
          `The server did not create an application (status ${answer.status}). Check --url and --prefix.`,
        )
      this.#keys.set(role as Role, given)
    }
  }

  async runAll(cases: readonly PlannedCase[]): Promise<void> {
    const isToken = ({ steps }: PlannedCase) => steps.some(({ operation }) => createsTokens(operation))
    const isUnsafe = cases.some(isToken) && (await this.#isDeduplicating())
    for (const [index, each] of cases.entries()) {
      if (isUnsafe && isToken(each)) {
        this.result.leftOut.push({ case: each.title, reason: 'deduplicates' })
        continue
      }
      if (this.#effects.signal.aborted) throw interrupted()
      if (this.#effects.clock() - this.#startedMs > MAX_MS)
        throw new CofferError('request_timeout', `The run took more than ${MAX_MS / 60_000} minutes.`)
      const records = this.#startRecords()
      try {
        await this.#runCase(each, records)
      } finally {
        await this.#delete(records)
      }
      await this.#effects.show(index + 1)
    }
  }

  #startRecords(): OwnRecords {
    const records = new OwnRecords()
    for (const { id } of this.#base.pending) records.addCreator(id)
    return records
  }

  /**
   * Creates a token with the same new data twice, and compares the ids. In a tenant that deduplicates, a case that
   * stores equal data could change a token that was there before.
   */
  async #isDeduplicating(): Promise<boolean> {
    const records = this.#startRecords()
    const input = { type: 'token', data: this.#effects.randomUuid() }
    const ids: unknown[] = []
    try {
      for (let count = 0; count < 2; count++) {
        const answer = await this.#send('token create', input, this.#keys.get(CREATOR)!)
        await this.#noteRecords('token create', answer, records)
        ids.push(readPath(answer.body, 'id'))
      }
    } finally {
      await this.#delete(records)
    }
    return ids[0] !== undefined && ids[0] === ids[1]
  }

  async cleanUp(): Promise<void> {
    await this.#delete(this.#base)
  }

  async #runCase({ title, own, steps }: PlannedCase, records: OwnRecords): Promise<void> {
    const fresh = new Map(own.map((name) => [name, this.#drawName(name)]))
    for (const name of fresh.values()) records.addDrawn(name)
    const planned = steps.map((step) => withOwnNames(step, fresh))
    const show = showReceived(new Set(listTexts(planned).map(({ text }) => text)))
    const saved = new Map<string, unknown>()
    for (const [index, step] of planned.entries()) {
      if (this.#effects.signal.aborted) throw interrupted()
      const input = fillIn(step.input ?? {}, saved) as Record<string, unknown>
      const note = (difference: string) =>
        this.result.differences.push({
          case: title,
          step: index + 1,
          operation: step.operation,
          difference: this.#redact(difference),
        })
      const key =
        step.as === undefined || step.as === 'owner' ? this.#keys.get(roleOf(step)) : saved.get(step.as)
      if (typeof key !== 'string') return void note('not sent: the server gave no key for this step')
      const stranger = await this.#findStranger(step.operation, input, records)
      if (stranger !== undefined) return void note(`not sent: ${stranger} is no record of this run`)
      this.result.compared.set(step.operation, (this.result.compared.get(step.operation) ?? 0) + 1)
      let answer: Answer
      try {
        answer = await this.#send(step.operation, input, key, step)
      } catch (error) {
        if (!(error instanceof CofferError)) throw error
        if (error.code === 'internal') throw error
        if (this.#unanswered >= MAX_UNANSWERED)
          throw new CofferError('unavailable', `The run ended, because ${error.message}.`)
        return void note(error.message)
      }
      if (await this.#noteRecords(step.operation, answer, records))
        return void note('the answer has a token that this run did not create')
      const [, verb] = /^(.+ delete)$/.exec(step.operation) ?? []
      if (verb !== undefined && answer.status === 204)
        records.noteGone({ delete: verb, id: String(input.id) })
      const mismatch = checkAnswer(answer, fillIn(step.expect, saved) as Step['expect'], show)
      // Later steps depend on this step, so their differences would have no meaning.
      if (mismatch !== undefined) return void note(mismatch)
      for (const [name, path] of Object.entries(step.save ?? {})) saved.set(name, readPath(answer.body, path))
    }
  }

  /** Resolves to whether the answer has tokens that the run did not create. */
  async #noteRecords(operation: string, answer: Answer, records: OwnRecords): Promise<boolean> {
    const { strangers, unsure } = records.noteAnswer(operation, answer)
    let isForeign = strangers.length > 0
    for (const id of unsure) isForeign = (await this.#isForeign(records, id)) || isForeign
    return isForeign
  }

  /** Asks the server who has created a token. Resolves to true if the token does not belong to the run. */
  async #isForeign(records: OwnRecords, id: string): Promise<boolean> {
    const { status, body } = await this.#send('token get', { id }, this.#keys.get(CREATOR)!, {
      signal: NEVER,
    })
    if (status === 200) return !records.noteCreator(id, readPath(body, 'created_by'))
    if (status === 404) records.noteGone({ delete: 'token delete', id })
    return false
  }

  /** Returns the name of a path parameter that is not the id of a record of this run. */
  async #findStranger(operation: string, input: Record<string, unknown>, records: OwnRecords) {
    if (EFFECTS[operation] === 'static') return undefined
    const definition = await this.#effects.find(operation)
    const parameters = definition?.endpoint.parameters ?? []
    return parameters.find((name) => !records.isOwn(input[name]))
  }

  async #send(
    operation: string,
    input: Record<string, unknown>,
    key: string,
    {
      idempotencyKey,
      signal = this.#effects.signal,
    }: { idempotencyKey?: string | undefined; signal?: AbortSignal } = {},
  ): Promise<Answer> {
    const definition = await this.#effects.find(operation)
    if (definition === undefined) throw new CofferError('internal', `There is no operation "${operation}".`)
    try {
      const answer = await this.#effects.ask({ definition, input, key, idempotencyKey, signal })
      this.#unanswered = 0
      collectSecrets(answer.body, this.#secrets)
      return answer
    } catch (error) {
      this.#unanswered++
      throw error
    }
  }

  async #delete(records: OwnRecords): Promise<void> {
    for (const record of records.pending) {
      if (this.#unanswered < MAX_UNANSWERED && (await this.#deleteOne(records, record))) continue
      this.result.remaining.push({ delete: record.delete, id: record.id })
    }
  }

  /** Resolves to false if the record may still exist. */
  async #deleteOne(records: OwnRecords, { delete: operation, id, isData }: OwnRecord): Promise<boolean> {
    const isOfOwnRole = /^(?:intent|document) /.test(operation)
    const role = isOfOwnRole ? roleOf({ operation }) : isData ? CREATOR : 'manager'
    const key = this.#keys.get(role)
    if (key === undefined) return false
    try {
      if (records.isUnsure(id) && (await this.#isForeign(records, id))) return true
      // The creator of the token is unknown, so the token is not deleted.
      if (records.isUnsure(id)) return !records.pending.some((each) => each.id === id)
      const { status } = await this.#send(operation, { id }, key, { signal: NEVER })
      return status === 204 || status === 200 || status === 404
    } catch (error) {
      if (error instanceof CofferError) return false
      throw error
    }
  }

  #drawName(name: string): string {
    if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(name)) return this.#effects.randomUuid()
    return `${name.slice(0, 20)}-${this.#effects.randomUuid().slice(0, 13)}`
  }

  #redact(text: string): string {
    let shown = text
    for (const secret of this.#secrets) shown = shown.replaceAll(secret, '<key>')
    return shown.length > SHOWN_CHARACTERS ? `${shown.slice(0, SHOWN_CHARACTERS)}…` : shown
  }
}

function withOwnNames(
  { input, expect, idempotencyKey, ...rest }: Step,
  names: ReadonlyMap<string, string>,
): Step {
  const key =
    idempotencyKey === undefined ? {} : { idempotencyKey: names.get(idempotencyKey) ?? idempotencyKey }
  return {
    ...rest,
    ...key,
    input: replaceTexts(input ?? {}, names) as Record<string, unknown>,
    expect: replaceTexts(expect, names) as Step['expect'],
  }
}

function replaceTexts(value: unknown, names: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string') return names.get(value) ?? value
  if (Array.isArray(value)) return value.map((item) => replaceTexts(item, names))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, replaceTexts(item, names)]))
}

const MAX_DEPTH = 6
const MIN_SECRET = 8

function collectSecrets(value: unknown, secrets: Set<string>, depth = 0): void {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return
  for (const [name, item] of Object.entries(value)) {
    if (/key$|nonce/.test(name) && typeof item === 'string' && item.length >= MIN_SECRET) secrets.add(item)
    else collectSecrets(item, secrets, depth + 1)
  }
}
