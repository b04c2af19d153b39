/**
 * A progress bar on standard error, for a person who waits. It draws only when told of progress, so it leaves no timer
 * behind; it knows nothing of what makes the progress.
 */
import { display, measureWidth, truncate } from './display.js'
import { isTerminal, type Terminal, write } from './terminal.js'

/** ms since the epoch. */
type Clock = () => number

export interface Progress {
  /** `count` more are done; draws at most ten times a second. */
  tick(count?: number): Promise<void>
  /** Takes the bar away so that other lines can be written; the next tick draws it again. */
  erase(): Promise<void>
  /** Takes the bar away and says in one line what was done, how fast. */
  finish(): Promise<void>
}

const REDRAW_MS = 100
const BAR_COLUMNS = 20
const DEFAULT_COLUMNS = 80
const ERASE_LINE = '\r\u001b[2K'

/**
 * Progress towards `total`, or without an end when there is none. Silent unless standard error is a terminal and
 * nobody asked for quiet.
 */
export function createProgress(
  terminal: Terminal,
  { label, total }: { label: string; total?: number },
  clock: Clock,
): Progress {
  const { stderr, quiet } = terminal
  const isShown = isTerminal(stderr) && !quiet
  const startedMs = clock()
  let drawnMs = Number.NEGATIVE_INFINITY
  let isOnScreen = false
  let done = 0

  async function tick(count = 1): Promise<void> {
    done += count
    const nowMs = clock()
    if (!isShown || nowMs - drawnMs < REDRAW_MS) return
    drawnMs = nowMs
    isOnScreen = true
    const line = describe({ label, done, total, elapsedMs: nowMs - startedMs })
    // A line as wide as the terminal would wrap, and could then not be erased.
    await write(stderr, ERASE_LINE + truncate(line, Math.max(1, (stderr.columns || DEFAULT_COLUMNS) - 1)))
  }

  async function erase(): Promise<void> {
    if (!isOnScreen) return
    isOnScreen = false
    drawnMs = Number.NEGATIVE_INFINITY
    await write(stderr, ERASE_LINE)
  }

  async function finish(): Promise<void> {
    if (!isShown) return
    await erase()
    const elapsedMs = clock() - startedMs
    const speed = elapsedMs > 0 ? ` (${formatRate(done, elapsedMs)})` : ''
    await write(stderr, `${display(label)}: ${formatCount(done)} in ${formatDuration(elapsedMs)}${speed}\n`)
  }

  return { tick, erase, finish }
}

interface State {
  label: string
  done: number
  total: number | undefined
  elapsedMs: number
}

function describe({ label, done, total, elapsedMs }: State): string {
  const rate = elapsedMs > 0 ? formatRate(done, elapsedMs) : ''
  if (total === undefined) return join([display(label), formatCount(done), rate])
  const share = total === 0 ? 1 : Math.min(1, done / total)
  const filled = Math.floor(share * BAR_COLUMNS)
  const bar = '█'.repeat(filled) + '░'.repeat(BAR_COLUMNS - filled)
  const leftMs = done > 0 && done < total ? (elapsedMs / done) * (total - done) : 0
  return join([
    display(label),
    bar,
    `${Math.floor(share * 100)} %`,
    `${formatCount(done)}/${formatCount(total)}`,
    rate,
    leftMs > 0 ? `${formatDuration(leftMs)} left` : '',
  ])
}

function join(parts: readonly string[]): string {
  return parts.filter((part) => measureWidth(part) > 0).join('  ')
}

function formatRate(done: number, elapsedMs: number): string {
  const perSecond = (done * 1000) / elapsedMs
  return `${perSecond < 10 ? perSecond.toFixed(1) : formatCount(Math.round(perSecond))}/s`
}

/** The same in every locale, so that output can be compared. */
function formatCount(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',')
}

function formatDuration(durationMs: number): string {
  const seconds = durationMs / 1000
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`
  const whole = Math.round(seconds)
  if (whole < 60) return `${whole} s`
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`
}
