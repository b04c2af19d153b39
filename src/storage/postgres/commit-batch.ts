/**
 * Commits several units of work with one statement. If the store refuses some units, because their rows or the state of
 * the store have changed, the other units commit again.
 */
import type { PendingLogs } from './logs.js'
import { COMMIT, type ConnectionPool } from './pool.js'
import type { Answer } from './session.js'
import {
  ANY_STATE,
  CHECK,
  type Commit,
  type ExpectedState,
  locksState,
  writeStatements,
} from './write-sql.js'

/** When the rows and log entries of a batch have this size, the batch takes no more commits. */
const MAX_BYTES = 1024 * 1024

/**
 * Begins a batch. The returned function adds a commit to the batch and returns true, or returns false if the commit
 * does not fit. One statement cannot change a row twice, compare a row that it changes, or expect two states.
 */
export function createFits(): (next: Commit) => boolean {
  const isChanged = new Map<unknown, boolean>()
  let expected: ExpectedState | undefined
  let bytes = 0
  let isAlone = false
  return (next) => {
    const { changes, logs = [], state = ANY_STATE } = next
    const isFirst = expected === undefined
    const isOther = !isFirst && !agree(expected!, state)
    isAlone ||= locksState(next)
    if (!isFirst && (isAlone || isOther || bytes >= MAX_BYTES)) return false
    for (const [name, { action }] of changes)
      if (isChanged.has(name) && (isChanged.get(name) || action < CHECK)) return false
    for (const [name, { action, sealed }] of changes) {
      isChanged.set(name, action < CHECK)
      bytes += sealed.length
    }
    for (const { entries } of logs) for (const each of entries) bytes += each.bytes
    // If a commit requires a value of the counter `changes`, the whole batch requires this value.
    if (isFirst || state.changes >= 0) expected = state
    return true
  }
}

/** Returns an answer for each commit. `accepted` is false in the answer to a commit that was refused. */
export async function commitTogether(
  pool: ConnectionPool,
  logs: PendingLogs,
  commits: readonly Commit[],
): Promise<Answer[]> {
  const logged = commits.flatMap((commit) => commit.logs ?? [])
  const [answer] = await logs.commit(logged, async (pending) => {
    const statements = writeStatements(commits, pending)
    // One statement is a transaction by itself.
    if (statements.length === 1) return (await pool.query(statements[0]!)).rows
    const sent = [{ text: 'begin' }, ...statements, COMMIT]
    const results = await pool.using((connection) => connection.send(sent))
    return results.at(-2)!.rows
  })
  if (answer.accepted) return commits.map(() => answer)
  const isRefused = ({ state }: Commit, at: number) =>
    answer.refused.includes(at + 1) || !agree(state!, answer)
  const others = commits.filter((commit, at) => !isRefused(commit, at))
  const answers = others.length === 0 ? [] : await commitTogether(pool, logs, others)
  return commits.map((commit, at) => (isRefused(commit, at) ? answer : answers.shift()))
}

function agree(one: ExpectedState, other: ExpectedState): boolean {
  const isSame = one.changes === other.changes || Math.min(one.changes, other.changes) < 0
  return isSame && one.generation === other.generation
}
