/** A line of CSV (RFC 4180), without the line end. */
export function toCsvLine(cells: readonly string[]): string {
  return cells.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(',')
}

/**
 * The start of a spreadsheet formula, also in full-width characters. Apostrophes before the formula match too, so that
 * `restore` returns exactly the original text.
 */
const FORMULA_START = /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/

/** Puts an apostrophe before text that looks like a formula, so that a spreadsheet does not evaluate the text. */
export function neutralize(text: string): string {
  return FORMULA_START.test(text) ? `'${text}` : text
}

export function restore(text: string): string {
  return text.startsWith("'") && FORMULA_START.test(text) ? text.slice(1) : text
}
