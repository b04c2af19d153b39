/** A progress bar on standard error. */
import { display, truncate } from './display.js'
import { DEFAULT_COLUMNS, isTerminal, type Terminal, write } from './terminal.js'

const REDRAW_MS = 100
const BAR_COLUMNS = 20
const ERASE_LINE = '\r\u001b[2K'

/** Draws nothing unless standard error is a terminal, or if `quiet`. `clock`: ms since the epoch. */
export function createProgress(
  { stderr, quiet }: Terminal,
  { label, total }: { label: string; total?: number },
  clock: () => number,
) {
  const isShown = isTerminal(stderr) && !quiet
  const startedMs = clock()
  let drawnMs = Number.NEGATIVE_INFINITY
  let isOnScreen = false
  let done = 0

  /** Draws the bar with `done` of the total, at most ten times a second; `share`: from 0 to 1, without a total. */
  async function show(now: number, share?: number): Promise<void> {
    done = now
    const nowMs = clock()
    if (!isShown || nowMs - drawnMs < REDRAW_MS) return
    drawnMs = nowMs
    isOnScreen = true
    const known = total === undefined ? share : total === 0 ? 1 : Math.min(1, done / total)
    const line = describe(label, done, { total, share: known }, nowMs - startedMs)
    // A line as wide as the terminal would wrap and could not be erased.
    await write(stderr, ERASE_LINE + truncate(line, Math.max(1, (stderr.columns || DEFAULT_COLUMNS) - 1)))
  }

  /** Replaces the bar by one line with the count and the rate. */
  async function finish(): Promise<void> {
    if (!isShown) return
    const elapsedMs = clock() - startedMs
    const speed = elapsedMs > 0 ? ` (${formatRate(done, elapsedMs)})` : ''
    const summary = `${display(label)}: ${formatCount(done)} in ${formatDuration(elapsedMs)}${speed}\n`
    await write(stderr, `${isOnScreen ? ERASE_LINE : ''}${summary}`)
  }

  return { show, finish }
}

function describe(
  label: string,
  done: number,
  { total, share }: Record<'total' | 'share', number | undefined>,
  elapsedMs: number,
): string {
  const filled = Math.floor((share ?? 0) * BAR_COLUMNS)
  const bar = '█'.repeat(filled) + '░'.repeat(BAR_COLUMNS - filled)
  const leftMs = share !== undefined && share > 0 && share < 1 ? (elapsedMs / share) * (1 - share) : 0
  const parts = [
    display(label),
    ...(share === undefined ? [] : [bar, `${Math.floor(share * 100)} %`]),
    formatCount(done) + (total === undefined ? '' : `/${formatCount(total)}`),
    elapsedMs > 0 ? formatRate(done, elapsedMs) : '',
    leftMs > 0 ? `${formatDuration(leftMs)} left` : '',
  ]
  return parts.filter((part) => part !== '').join('  ')
}

function formatRate(done: number, elapsedMs: number): string {
  const perSecond = (done * 1000) / elapsedMs
  return `${perSecond < 10 ? perSecond.toFixed(1) : formatCount(Math.round(perSecond))}/s`
}

/** Independent of the locale. */
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
