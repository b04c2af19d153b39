import { MAX_FILE_BYTES } from '../../domain/updater/request-file.js'
import { checkUpload, downloadFile, uploadFile } from '../../operations/updater/files.js'
import { answerText, type HttpRequest, type HttpResponse } from '../exchange.js'
import { readWhole } from '../input.js'
import type { AnswererOptions } from '../options.js'

type Host = AnswererOptions['host']
type Asked = Parameters<typeof uploadFile>[1]

const CSV_TYPE = 'text/csv; charset=utf-8'

/**
 * Reads the body only if the secret in the address is valid.
 * @throws CofferError `forbidden`, `too_large`
 */
export async function answerUpload(host: Host, asked: Asked, request: HttpRequest): Promise<HttpResponse> {
  await checkUpload(host, asked)
  await uploadFile(host, asked, await readWhole(request, MAX_FILE_BYTES))
  return answerText(200, 'text/plain; charset=utf-8', '')
}

/** @throws CofferError `forbidden` */
export async function answerDownload(host: Host, asked: Asked): Promise<HttpResponse> {
  const answer = answerText(200, CSV_TYPE, await downloadFile(host, asked))
  answer.headers['content-disposition'] = 'attachment; filename="result.csv"'
  return answer
}
