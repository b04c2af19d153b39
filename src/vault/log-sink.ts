import { LogSink, type LogSinkOptions } from '../delivery/log-sink.js'
import { createSinkSender } from '../delivery/sink-sender.js'
import type { App } from './app.js'

/** `address`, `token`: see `createSinkSender`. @throws CofferError `usage` */
export function createLogSink(
  app: App,
  {
    address,
    token,
    ...effects
  }: Pick<LogSinkOptions, 'notice' | 'wait'> & { address: string; token?: string | undefined },
): LogSink {
  const sink = new LogSink({ store: app.store, sender: createSinkSender(address, { token }), ...effects })
  app.attachLogSink(sink)
  return sink
}
