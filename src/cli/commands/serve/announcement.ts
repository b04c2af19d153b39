/** Prints, when `coffer serve` is ready, the address, the keys, and command lines to paste. */
import type { ControlState } from '../../../control/control-state.js'
import { quoteWord } from '../../../domain/text/quote-word.js'
import { CONTROL_PATH } from '../../../framework/operation.js'
import type { Sandbox } from '../../../framework/ports/reactors.js'
import { nameHeaders } from '../../../http/headers.js'
import { DEFAULT_PREFIX } from '../../../http/sockets.js'
import type { App } from '../../../vault/app.js'
import type { SampleApplication } from '../../../vault/sample-applications.js'
import type { CommandContext } from '../../context.js'
import { display } from '../../output/display.js'
import { printNotice } from '../../output/output.js'
import { write } from '../../output/terminal.js'
import { describeConfinement, describeConfinementGaps } from '../../target/reactor-options.js'
import type { ServeOptions } from './serve-options.js'

/** A vault to be served. */
export interface Opened {
  /** Only for a vault in memory. */
  plane?: ControlState
  /** By type, or by name. */
  samples: Record<string, SampleApplication>
  place: string
  /** With these flags a command reaches the vault. */
  flags?: readonly string[]
}

export type Announced = Opened & {
  url: string
  pageUrl: string | undefined
  controlKey: string | undefined
  sandbox: Sandbox
}

/** Prints it in the format of the configuration, and what weakens the server on standard error. */
export async function announce(
  { terminal, config, program }: CommandContext,
  { prefix, isRemote, tls, seed }: ServeOptions,
  app: App,
  announced: Announced,
): Promise<void> {
  const { url, pageUrl, samples, flags, controlKey, sandbox } = announced
  if (config.output === 'json') {
    const { id, owner_id } = await app.tenant()
    const line = {
      url,
      prefix,
      tenant_id: id,
      owner_id,
      applications: samples,
      page_url: pageUrl,
      control: controlKey && { url: `${url}${CONTROL_PATH}`, key: controlKey },
      reactor_sandbox: sandbox,
    }
    await write(terminal.stdout, `${JSON.stringify(line)}\n`)
  } else {
    const header = nameHeaders(prefix).apiKey.toUpperCase()
    const others = [
      ...(prefix === DEFAULT_PREFIX ? [] : [['prefix', prefix]]),
      ...(tls === undefined ? [] : [['ca', tls.cert]]),
    ]
    const profile = [['url', url], ...others].map(
      (words) => `  ${program} profile set local ${words.map(quoteWord).join(' ')}\n`,
    )
    const words = ['token', 'list', ...(flags ?? [])].map(quoteWord)
    // Other processes cannot reach a vault in memory.
    const command = flags === undefined ? '' : `  ${program} ${words.join(' ')}\n`
    // Only the private sample application may create and list tokens.
    const key = seed === undefined ? samples.private?.key : await findAble(app, samples)
    const text = introduce(announced, { header, program, profile: profile.join(''), command }, key)
    await write(terminal.stdout, text)
  }
  const gaps = describeConfinementGaps(sandbox)
  if (gaps !== undefined) await printNotice(terminal, gaps)
  if (isRemote && tls === undefined) {
    const danger = 'Other machines can reach this server, and their requests are not encrypted.'
    await printNotice(terminal, `${danger} Use --tls-cert and --tls-key.`)
  }
}

/** The key of the first application that may create and list tokens everywhere. */
async function findAble(app: App, samples: Announced['samples']): Promise<string | undefined> {
  for (const { key } of Object.values(samples)) {
    if (key === undefined) continue
    const { result } = await app.ask({ operation: 'app whoami', input: {}, as: { key } })
    const everywhere = result.rules?.filter(({ container }) => container === '/') ?? []
    const granted = [result.permissions ?? [], everywhere.map(({ permissions }) => permissions)].flat(2)
    if (granted.includes('token:create') && granted.includes('token:read')) return key
  }
  return undefined
}

/** `profile` and `command`: command lines that a person pastes. */
function introduce(
  { url, pageUrl, controlKey, place, samples, sandbox }: Announced,
  { header, program, profile, command }: Record<'header' | 'program' | 'profile' | 'command', string>,
  known: string | undefined,
): string {
  const keys = Object.entries(samples).map(([type, sample]) => `  ${type.padEnd(11)} ${tellKey(sample)}`)
  const isNew = Object.values(samples).some(({ key }) => key !== undefined)
  const title = isNew ? 'Applications, with their keys' : 'Applications'
  const list = keys.length === 0 ? '' : `${title}:\n${keys.join('\n')}\n`
  const whose = isNew ? 'one that may create and list tokens' : 'the private one'
  const key = known ?? (keys.length === 0 ? 'KEY' : `<the key of ${whose}>`)
  const advice = keys.length === 0 ? 'There is no application yet: --starter-apps creates three.\n' : ''
  const control =
    controlKey === undefined ? '' : `Control plane, for tests: ${url}${CONTROL_PATH}, key ${controlKey}\n`
  const page =
    pageUrl === undefined ? '' : `Page, with what happens here; works once, for two minutes: ${pageUrl}\n`
  return `Coffer answers at ${url} (reference: ${url}/)
${page}Vault: ${place}
${describeConfinement(sandbox)}
${control}${list}${advice}
Try:
${command}  curl ${url}/tokens -H '${header}: ${key}' -H 'Content-Type: application/json' \\
    -d '{"type":"card_number","data":"4242424242424242"}'
  curl ${url}/tokens -H '${header}: ${key}'
Or with the same commands, once a profile has the address and a key:
${profile}  ${program} profile set local api-key
  ${program} token list --profile local

Press Ctrl-C to stop.
`
}

function tellKey({ id, key, name = id }: SampleApplication): string {
  return key ?? `${display(name)} (key not shown again: coffer app key create ${display(quoteWord(name))})`
}
