/** Cells of CSV files that a person may open in a spreadsheet. */

/** A line of CSV (RFC 4180), without its end. */
export function toCsvLine(cells: readonly string[]): string {
  return cells.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(',')
}

/**
 * The start of a spreadsheet formula, also in full-width characters. The expression also matches apostrophes before
 * the formula, so that `restore` returns exactly the original text.
 */
const FORMULA_START = /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/

/** Puts an apostrophe before text that looks like a formula, so that a spreadsheet does not evaluate it. */
export function neutralize(text: string): string {
  return FORMULA_START.test(text) ? `'${text}` : text
}

export function restore(text: string): string {
  return text.startsWith("'") && FORMULA_START.test(text) ? text.slice(1) : text
}
