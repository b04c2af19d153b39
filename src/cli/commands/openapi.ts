/** `coffer openapi`: prints the OpenAPI document; needs no server and no vault. */
import { createDocument } from '../../http/openapi/openapi.js'
import { VERSION } from '../../version.js'
import type { CommandContext } from '../context.js'
import { printResult } from '../output/output.js'
import type { Options } from '../task.js'
import { readDocumentFlags } from './serve/serve-options.js'

/** @throws CofferError `usage` */
export async function printOpenApi(context: CommandContext, flags: Options): Promise<void> {
  const document = createDocument(context.registry, {
    version: VERSION,
    ...readDocumentFlags(flags, context.config),
  })
  await printResult(context.terminal, document, { format: 'json', fields: context.config.fields })
}
