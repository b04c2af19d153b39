/** The mail side of `coffer serve`: the outbox page of a local server, and the post that carries mail while it runs. */

import { createOutboxPage, OUTBOX_PATH } from '../../../http/pages/outbox-page.js'
import type { Page } from '../../../http/pages/pages.js'
import { readMailSettings } from '../../../operations/invite/mail.js'
import type { App } from '../../../vault/app.js'

export interface ServedMail {
  /** The outbox, where there is one. */
  pages: ReadonlyMap<string, Page>
  /** Starts to carry mail, once it is known where people reach the server; gives what opens the outbox, if it is in use. */
  start(url: string): Promise<{ outboxUrl?: string }>
}

/**
 * Other machines never reach the outbox, so a server for them has none. `write` takes lines for the log, `fault` what
 * should not have happened.
 */
export function prepareMail(app: App, { isRemote, isSecure, write, fault }: ServedMailOptions): ServedMail {
  let publicUrl = ''
  const outbox = createOutboxPage({
    store: app.store,
    drawBytes: (count) => app.random.bytes(count),
    isEqualSecret: app.isEqualSecret,
    isSecure,
    publicUrl: () => publicUrl,
  })
  return {
    pages: new Map(isRemote ? [] : [[OUTBOX_PATH, outbox.page]]),
    start: async (url) => {
      publicUrl = url
      await app.post.resume({ publicUrl: url, notice: (text) => write(`${text}\n`), fault })
      const settings = await app.store.read((reader) => readMailSettings(reader))
      return isRemote || settings.url !== undefined ? {} : { outboxUrl: `${url}${outbox.loginPath}` }
    },
  }
}

export interface ServedMailOptions {
  isRemote: boolean
  isSecure: boolean
  write(text: string): void
  fault(error: unknown): void
}
