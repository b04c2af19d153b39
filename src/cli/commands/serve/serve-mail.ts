/** Mail of `coffer serve`: the outbox page, and sending mail in the background. */

import { createOutboxPage, OUTBOX_PATH } from '../../../http/pages/outbox-page.js'
import type { Page } from '../../../http/pages/pages.js'
import { readMailSettings } from '../../../operations/invite/mail.js'
import type { App } from '../../../vault/app.js'

export interface ServedMail {
  /** The outbox page, if available. */
  pages: ReadonlyMap<string, Page>
  /** Starts sending mail, with `url` as the public URL; resolves to the URL of the outbox if it is in use. */
  start(url: string): Promise<{ outboxUrl?: string }>
}

/** A server for other machines has no outbox. `write` logs a line, `fault` an unexpected error. */
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
