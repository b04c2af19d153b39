import type { ControlState } from '../../../control/control-state.js'
import { quoteWord } from '../../../domain/text/quote-word.js'
import { CONTROL_PATH } from '../../../framework/declaration.js'
import { headerNames } from '../../../http/headers.js'
import type { SampleApplication } from '../../../vault/sample-applications.js'
import type { CommandContext } from '../../context.js'
import { display } from '../../output/display.js'
import { printWarning } from '../../output/output.js'
import { write } from '../../output/terminal.js'
import type { ServeOptions } from './serve-options.js'

export const STOPPING = 'Stopping after the requests in progress. Press Ctrl-C again to stop immediately.'

export interface Opened {
  control: ControlState
  samples: Record<string, SampleApplication>
  place: string
  /**
   * The flags with which a command uses this vault. Undefined for a vault in memory, which other processes cannot use.
   */
  flags?: readonly string[]
  /** API keys that the user chose in the seed (`--test-keys`). These keys are never printed. */
  chosenKeys?: ReadonlySet<unknown>
  watch?(control: ControlState): Promise<void>
}

type Announced = Opened &
  Record<'pageUrl' | 'controlKey', string | undefined> & {
    url: string
    /** A control key that the user chose is never printed. */
    isKeyChosen: boolean
  }

export async function announce(
  { terminal, config, program }: CommandContext,
  { prefix, isRemote, tls, acceptsTestKeys }: ServeOptions,
  given: Announced,
): Promise<void> {
  const announced = { ...given, samples: hideKeys(given) }
  const { url, pageUrl, samples, controlKey, isKeyChosen, control } = announced
  if (config.output === 'json') {
    const { id, owner_id } = await control.app.tenant()
    const line = {
      url,
      prefix,
      tenant_id: id,
      owner_id,
      applications: samples,
      page_url: pageUrl,
      control: controlKey && {
        url: `${url}${CONTROL_PATH}`,
        ...(isKeyChosen ? { for_other_machines: true } : { key: controlKey }),
      },
      ...(acceptsTestKeys && { test_keys: true }),
      reactor_sandbox: await control.app.sandbox(),
    }
    await write(terminal.stdout, `${JSON.stringify(line)}\n`)
  } else await write(terminal.stdout, formatBanner(program, prefix, announced))
  if (isRemote && tls === undefined) {
    const danger = 'Other machines can reach this server, and their requests are not encrypted.'
    await printWarning(terminal, `${danger} Use --tls-cert and --tls-key.`)
  }
  if (acceptsTestKeys)
    await printWarning(
      terminal,
      'This server accepts the API keys of its seed (--test-keys). Use it for test data only.',
    )
}

function hideKeys({ samples, chosenKeys }: Pick<Opened, 'samples' | 'chosenKeys'>): Opened['samples'] {
  if (chosenKeys === undefined) return samples
  const entries = Object.entries(samples).map(([name, sample]) => {
    const { key, ...others } = sample
    return [name, chosenKeys.has(key) ? { ...others, is_key_chosen: true } : sample] as const
  })
  return Object.fromEntries(entries)
}

function formatBanner(program: string, prefix: string, announced: Announced): string {
  const { url, pageUrl, controlKey, isKeyChosen, place, samples, flags } = announced
  const all = Object.entries(samples)
  const header = `-H '${headerNames(prefix).apiKey.toUpperCase()}: ${samples.private?.key ?? 'KEY'}'`
  const lines = [
    `Coffer answers at ${url} (reference: ${url}/)`,
    pageUrl && `Dashboard (sign-in link, valid once for 2 minutes): ${pageUrl}`,
    `Vault: ${place}`,
    controlKey &&
      `Control plane, for tests: ${url}${CONTROL_PATH}, ${isKeyChosen ? 'also for other machines, with the key that you chose' : `key ${controlKey}`}`,
    all.length === 0 ? 'There is no application yet: --starter-apps creates three.' : 'Applications:',
    ...all.map(([type, sample]) => `  ${type.padEnd(11)} ${describeKey(sample)}`),
    '',
    'Try:',
    flags && `  ${program} ${['token', 'list', ...flags].map(quoteWord).join(' ')}`,
    `  curl ${url}/tokens ${header} -H 'Content-Type: application/json' \\`,
    `    -d '{"type":"card_number","data":"4242424242424242"}'`,
    `  curl ${url}/tokens ${header}`,
    '',
    'Press Ctrl-C to stop.',
  ]
  return `${lines.filter((line) => line !== undefined).join('\n')}\n`
}

function describeKey({ id, key, name = id, is_key_chosen: isChosen }: SampleApplication): string {
  if (isChosen) return `${id} (the key in the seed)`
  return key ?? `${display(name)} (key not shown again: coffer app key create ${display(quoteWord(name))})`
}
