import { CofferError } from '../../errors.js'
import type { HttpRequest } from '../exchange.js'
import { readHeader } from '../headers.js'
import { readWhole } from '../input.js'

const FORM_TYPE = 'application/x-www-form-urlencoded'

/** @throws CofferError `unsupported_media_type`, `too_large` */
export async function readFields(request: HttpRequest, limitBytes: number): Promise<URLSearchParams> {
  const type = readHeader(request.headers, 'content-type')?.split(';')[0]?.trim().toLowerCase()
  if (type !== FORM_TYPE)
    throw new CofferError('unsupported_media_type', `The content type of a form must be ${FORM_TYPE}.`)
  return new URLSearchParams(Buffer.from(await readWhole(request, limitBytes)).toString('utf8'))
}
