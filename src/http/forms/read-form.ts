/** Parses `multipart/form-data` (RFC 7578) while it arrives. Only `receive-form.ts` loads this file. */
import { Dicer } from '@fastify/busboy'
import { type CofferError, validationError } from '../../errors.js'

/** The names of the headers are in lower case. */
type PartHeader = Readonly<Record<string, readonly string[] | undefined>>

export interface FormPart {
  name: string
  contentType: string | undefined
  bytes: AsyncIterable<Uint8Array>
}

/** A form has two parts. A third part is read too, so that a repeated part gets its own error message. */
const MAX_PARTS = 3
const HEADER_LIMITS = { maxHeaderPairs: 16, maxHeaderSize: 8 * 1024 }
/** The parser reads at most this much of a part ahead. */
const AHEAD_BYTES = 16 * 1024
const IDENTITY = ['7bit', '8bit', 'binary']
const NAMED = /^form-data(?=;|\s*$)/i
const PARAMETER = /\s*;\s*([\w*-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))/gy

/**
 * Calls `take` for each part, one after another. `take` must read all bytes of the part. At the first error, stops
 * reading `pieces`.
 * @throws CofferError `validation` if the form is malformed, and the errors of `pieces` and `take`
 */
export async function readForm(
  pieces: AsyncIterable<Uint8Array>,
  boundary: string,
  take: (part: FormPart) => Promise<void>,
): Promise<void> {
  const parser = new Dicer({
    boundary,
    ...HEADER_LIMITS,
    partHwm: AHEAD_BYTES,
    highWaterMark: AHEAD_BYTES,
  } as Dicer.Config)
  let fault: { error: unknown } | undefined
  let isFinished = false
  let wake = () => {}
  let finish = () => {}
  const refuse = (error: unknown) => {
    fault ??= { error }
    wake()
  }
  /**
   * Waits until `begin` calls `done`, or until the form is refused. Each wait releases its memory, because a form can
   * have very many tiny pieces.
   */
  const wait = async (begin: (done: () => void) => void) => {
    await new Promise<void>((resolve) => {
      wake = resolve
      if (fault === undefined) begin(resolve)
      else resolve()
    })
    if (fault !== undefined) throw fault.error
  }
  let taking = Promise.resolve()
  const parts: Dicer.PartStream[] = []
  parser.on('error', () => refuse(malformed()))
  // The parser emits `finish` when the last part was taken. After `finish`, the parser does not call the callback of
  // `write` if the last piece of the body is large.
  parser.on('finish', () => {
    isFinished = true
    finish()
  })
  parser.on('part', (part: Dicer.PartStream) => {
    // A part fails if the form ends in the middle of the part.
    part.on('error', () => refuse(malformed()))
    if (parts.push(part) > MAX_PARTS) {
      refuse(validationError('The form has too many parts.'))
      part.resume()
      return
    }
    part.on('header', (header: object) => {
      taking = taking.then(() => take(describePart(header as PartHeader, part)))
      taking.catch((error: unknown) => {
        refuse(error)
        part.resume()
      })
    })
  })
  const iterator = pieces[Symbol.asyncIterator]()
  try {
    for (;;) {
      let next: IteratorResult<Uint8Array> | undefined
      await wait((done) => {
        iterator.next().then((result) => {
          next = result
          done()
        }, refuse)
      })
      if (next!.done) break
      if (isFinished) continue
      const { value } = next!
      await wait((done) => {
        finish = done
        parser.write(value, () => done())
      })
    }
    // The parser reports an incomplete form shortly after `end` has called its callback.
    if (!isFinished) await wait((done) => parser.end(() => setImmediate(done)))
    await wait((done) => void taking.then(done, refuse))
  } catch (error) {
    // Ends the work on the parts, so that nothing is stored after this function fails.
    for (const part of parts) part.destroy()
    // `return` ends the source only after the next piece of the body has arrived. The answer does not wait for this
    // piece.
    void iterator.return?.().catch(() => undefined)
    await taking.catch(() => undefined)
    throw error
  }
}

/** @throws CofferError `validation` */
function describePart(header: PartHeader, bytes: AsyncIterable<Uint8Array>): FormPart {
  const name = nameOf(onlyValue(header, 'content-disposition') ?? '')
  const encoding = onlyValue(header, 'content-transfer-encoding')
  if (name === undefined)
    throw validationError('Each part of the form needs the header Content-Disposition: form-data; name="…".')
  if (encoding !== undefined && !IDENTITY.includes(encoding.trim().toLowerCase()))
    throw validationError('A part of the form is encoded. Send its bytes without Content-Transfer-Encoding.')
  return { name, contentType: onlyValue(header, 'content-type')?.trim(), bytes }
}

function onlyValue(header: PartHeader, name: string): string | undefined {
  const values = header[name] ?? []
  if (values.length <= 1) return values[0]
  throw validationError('A part of the form repeats a header.')
}

/** Returns undefined if the header has no parameter `name` or is malformed. */
function nameOf(disposition: string): string | undefined {
  const start = NAMED.exec(disposition)
  if (start === null) return undefined
  let name: string | undefined
  let at = start[0].length
  for (const match of disposition.slice(at).matchAll(PARAMETER)) {
    at += match[0].length
    if (match[1]!.toLowerCase() !== 'name') continue
    if (name !== undefined) return undefined
    name = match[2] ?? match[3]
  }
  return disposition.slice(at).trim() === '' ? name : undefined
}

function malformed(): CofferError {
  return validationError('The body is not a complete form (multipart/form-data), or its boundary is wrong.')
}
