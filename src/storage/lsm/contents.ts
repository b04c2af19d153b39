/**
 * What the vault is made of, in memory and as the `state` document spells it. Pure: reading and writing the document
 * is the vault file's.
 */
import { decodeId, encodeId, fromBase64, packRows, toBase64, unpackRows } from '../bytes.js'
import type { State, StateCounters, StateSegment } from '../vault-file.js'
import { Segment, type SegmentPlace } from './sstable/reader.js'
import { LiveSegment } from './sstable/search.js'
import { type Counters, createCounters } from './transaction.js'

/** A journal that `state` names, and the tag its first frame chains to. */
export interface JournalName {
  id: Uint8Array
  previous: Uint8Array
}

export interface Contents {
  /** Counts the states there have been. */
  generation: number
  /** Digests of the `vault.json` that fits. */
  headers: readonly string[]
  counters: Counters
  /** Oldest first. */
  journals: readonly JournalName[]
  /** By family, ascending by lowest `seq`. */
  segments: readonly LiveSegment[]
}

export function encodeContents(contents: Contents): State {
  const { generation, headers, counters, journals, segments } = contents
  return {
    generation,
    headers: [...headers],
    counters: encodeCounters(counters),
    journals: journals.map(({ id, previous }) => ({ id: encodeId(id), previous: toBase64(previous) })),
    segments: segments.map(encodeSegment),
  }
}

/** `last`, `since` and `until` are spelled only where the clock has jumped, as they were unknown once. */
function encodeCounters({ chains, last, since, until, ...numbers }: Counters): StateCounters {
  const spelled: StateCounters['chains'] = {}
  for (const [tenant, { value, count }] of chains) spelled[tenant] = { value: toBase64(value), count }
  const jump = { ...(last === numbers.time ? {} : { last }), ...(since === 0 ? {} : { since, until }) }
  return { ...numbers, ...jump, chains: spelled }
}

/** A segment as `state` spells it. */
export function encodeSegment({ segment, dead, due, dropped }: LiveSegment): StateSegment {
  const { id, family, tag, bytes, rows, from, to } = segment.name
  return {
    id: encodeId(id),
    family,
    tag: toBase64(tag),
    bytes,
    rows,
    from,
    to,
    dead: packRows(dead),
    due: packRows(due),
    dropped: [...dropped],
  }
}

/** Contract: the state is authentic, so that its shape needs no check. */
export function decodeContents(state: State, place: SegmentPlace): Contents {
  const { generation, headers, journals, segments } = state
  return {
    generation,
    headers,
    counters: decodeCounters(state.counters),
    journals: journals.map(({ id, previous }) => ({ id: decodeId(id)!, previous: fromBase64(previous) })),
    segments: segments.map((entry) => decodeSegment(entry, place)),
  }
}

function decodeCounters({ chains, ...numbers }: StateCounters): Counters {
  const counters: Counters = { ...createCounters(), last: numbers.time, ...numbers }
  for (const [tenant, { value, count }] of Object.entries(chains)) {
    counters.chains.set(Number(tenant), { value: fromBase64(value), count })
  }
  return counters
}

/** The segment that {@link encodeSegment} spelled. */
export function decodeSegment(entry: StateSegment, place: SegmentPlace): LiveSegment {
  const { family, bytes, rows, from, to } = entry
  const name = { id: decodeId(entry.id)!, family, tag: fromBase64(entry.tag), bytes, rows, from, to }
  return new LiveSegment(
    new Segment(place, name),
    unpackRows(entry.dead),
    unpackRows(entry.due),
    new Set(entry.dropped),
  )
}

/** Segments of each family by lowest `seq`, so that neighbours stand side by side. */
export function orderSegments(segments: readonly LiveSegment[]): LiveSegment[] {
  return [...segments].sort((left, right) => left.segment.name.from - right.segment.name.from)
}
