/** The script and the style of the page at `/`, as the build made them. */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { CofferError } from '../../errors.js'

/** @throws CofferError `internal` if they were not built */
export function readScript(): { code: string; style: string } {
  // Beside the bundled command line, or three levels above this module as compiled.
  const found = ['page.js', '../../../page.js']
    .map((path) => fileURLToPath(new URL(path, import.meta.url)))
    .find((path) => existsSync(path))
  if (found === undefined) throw new CofferError('internal', 'The page was not built; run the build.')
  return { code: readFileSync(found, 'utf8'), style: readFileSync(found.replace(/js$/, 'css'), 'utf8') }
}
