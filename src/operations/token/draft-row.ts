import { omitUndefined } from '../../domain/omit-undefined.js'
import type { TokenDraft } from '../../domain/token/token.js'
import type { Context } from '../../framework/context.js'

export function putOptions({ searchValues, expires }: TokenDraft) {
  return { search: searchValues, ...omitUndefined({ expires }) }
}

export function fingerprintOf(context: Context, { fingerprintText }: TokenDraft): Promise<string> {
  return context.store.fingerprint(context.caller.tenant, fingerprintText)
}
