/** The content of a file, in pieces, so that a large file is never in memory as a whole. */

/** A text is sent as UTF-8. A `StagedUpload` is content that was uploaded before. */
export type GivenContent = string | Uint8Array | AsyncIterable<Uint8Array> | StagedUpload

export interface StagedUpload {
  readonly upload: string
}

/** The content can be read only once: `for await (const bytes of content)`. */
export class Content implements AsyncIterable<Uint8Array> {
  /** The media type, such as `application/pdf`. */
  readonly type: string
  /** In bytes. Undefined if the size is unknown. */
  readonly size: number | undefined
  readonly #pieces: AsyncIterable<Uint8Array>

  constructor(type: string, size: number | undefined, pieces: AsyncIterable<Uint8Array>) {
    this.type = type
    this.size = size
    this.#pieces = pieces
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return this.#pieces[Symbol.asyncIterator]()
  }
}

/** A stream can be sent only once. */
export function isStream(content: unknown): content is AsyncIterable<Uint8Array> {
  return typeof content === 'object' && content !== null && Symbol.asyncIterator in content
}

export function isContent(value: unknown): value is GivenContent {
  if (typeof value === 'string' || value instanceof Uint8Array || isStream(value)) return true
  return typeof value === 'object' && value !== null && 'upload' in value && typeof value.upload === 'string'
}

export async function* piecesOf(content: Exclude<GivenContent, StagedUpload>): AsyncGenerator<Uint8Array> {
  if (typeof content === 'string') yield Buffer.from(content)
  else if (content instanceof Uint8Array) yield content
  else yield* content
}
