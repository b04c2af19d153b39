import { display, formatCount, truncate } from './display.js'
import { DEFAULT_COLUMNS, isTerminal, type Terminal, write } from './terminal.js'

const REDRAW_MS = 100
const BAR_COLUMNS = 20
const ERASE_LINE = '\r\u001b[2K'

/** Draws only if standard error is a terminal and `quiet` is false. `clock`: ms since the epoch. */
export function createProgress(
  { stderr, quiet }: Pick<Terminal, 'stderr' | 'quiet'>,
  { label, total }: { label: string; total?: number },
  clock: () => number,
) {
  const isShown = isTerminal(stderr) && !quiet
  const name = display(label)
  const startedMs = clock()
  let drawnMs = Number.NEGATIVE_INFINITY
  let done = 0
  return {
    /** If there is no total, the caller may pass `share`, from 0 to 1. */
    show: async (now: number, share = total && Math.min(1, now / total)): Promise<void> => {
      done = now
      const nowMs = clock()
      if (!isShown || nowMs - drawnMs < REDRAW_MS) return
      drawnMs = nowMs
      const count = formatCount(done) + (total === undefined ? '' : `/${formatCount(total)}`)
      const line = `${name}  ${share === undefined ? '' : drawBar(share)}${count}`
      // A line as wide as the terminal would wrap, and could not be erased.
      await write(stderr, ERASE_LINE + truncate(line, Math.max(1, (stderr.columns || DEFAULT_COLUMNS) - 1)))
    },
    finish: async (): Promise<void> => {
      const seconds = ((clock() - startedMs) / 1000).toFixed(1)
      const text = done === 0 ? '' : `${name}: ${formatCount(done)} in ${seconds} s\n`
      done = 0
      if (isShown) await write(stderr, ERASE_LINE + text)
    },
  }
}

function drawBar(share: number): string {
  return `${'█'.repeat(share * BAR_COLUMNS).padEnd(BAR_COLUMNS, '░')}  ${Math.floor(share * 100)} %  `
}
