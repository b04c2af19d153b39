/**
 * For `coffer serve --ephemeral --seed FILE --watch`: when the file changes, loads its seed into the vault in memory.
 */
import { readdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pause } from '../../../client/pause.js'
import type { ControlState } from '../../../control/control-state.js'
import { CofferError, codeOf } from '../../../errors.js'
import type { CommandContext } from '../../context.js'
import { printLogLine, printWarning } from '../../output/output.js'
import { chooseSeeds, readSeed } from './seed-files.js'

/** The file is polled, because an editor may replace the file by a new file. */
const ASKED_EVERY_MS = 300
const SHOWN_ERRORS = 20

/** The returned function watches until the run is interrupted. If a seed is refused, the vault keeps its contents. */
export function followSeed(context: CommandContext, path: string) {
  const place = resolve(context.cwd, path)
  let version = versionOf(place)
  return async (control: ControlState): Promise<void> => {
    while (!context.signal.aborted) {
      const current = versionOf(place)
      if (current === version) {
        await pause(ASKED_EVERY_MS, context.signal, { ref: false })
        continue
      }
      version = current
      await load(context, control, path)
    }
  }
}

/**
 * Returns a text that changes when the file changes. For a directory, the text changes when the directory or one of its
 * seeds changes.
 */
function versionOf(place: string): string {
  try {
    const isDirectory = statSync(place, { throwIfNoEntry: false })?.isDirectory() === true
    const names = isDirectory ? chooseSeeds(readdirSync(place)) : []
    return [place, ...names.map((name) => join(place, name))].map(describeFile).join('\n')
  } catch (error) {
    return codeOf(error)
  }
}

function describeFile(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false, bigint: true })
  return stat === undefined ? '' : [path, stat.ino, stat.size, stat.mtimeNs].join(' ')
}

async function load(context: CommandContext, control: ControlState, path: string): Promise<void> {
  const { terminal } = context
  try {
    const { seed, chosenKeys, explain } = await readSeed(context, path)
    const added = await control.reseed(seed).catch((error) => {
      throw explain(error)
    })
    await printLogLine(terminal, `${path} has changed. The vault was reset to the new seed.`)
    // A key that the seed contains is never printed.
    for (const [name, { key }] of Object.entries(added))
      await printLogLine(
        terminal,
        `New application ${name}: ${chosenKeys.has(key) ? 'with the key of the seed' : key}`,
      )
  } catch (error) {
    if (!(error instanceof CofferError)) throw error
    await printWarning(terminal, describe(path, error))
  }
}

function describe(path: string, { message, errors = {} }: CofferError): string {
  const entries = Object.entries(errors)
  const places = entries.slice(0, SHOWN_ERRORS).map(([place, [why]]) => `\n  ${place}: ${why}`)
  const more = entries.length > SHOWN_ERRORS ? `\n  (and ${entries.length - SHOWN_ERRORS} more)` : ''
  const reason = entries.length === 0 ? ` ${message}` : places.join('') + more
  return `${path} has changed, but was not loaded. The vault keeps its contents.${reason}`
}
