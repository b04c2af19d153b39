/**
 * The content of a file, as operations take and return it. Operations process the content in pieces, so a
 * large file is never in memory as a whole.
 */

/** A text is sent as UTF-8. `upload` names content that was uploaded before, in pieces. */
export type GivenContent = string | Uint8Array | AsyncIterable<Uint8Array> | StagedUpload

export interface StagedUpload {
  readonly upload: string
}

/**
 * Content that an operation returns. The content can be read once: `for await (const bytes of content)`.
 */
export class Content implements AsyncIterable<Uint8Array> {
  /** The media type, such as `application/pdf`. */
  readonly type: string
  /** In bytes. Undefined if a server does not tell it. */
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

/** Whether the content arrives in pieces. A stream can be sent only once. */
export function isStream(content: unknown): content is AsyncIterable<Uint8Array> {
  return typeof content === 'object' && content !== null && Symbol.asyncIterator in content
}

/** Whether the value is a {@link GivenContent}. */
export function isContent(value: unknown): value is GivenContent {
  if (typeof value === 'string' || value instanceof Uint8Array || isStream(value)) return true
  return typeof value === 'object' && value !== null && 'upload' in value && typeof value.upload === 'string'
}

/** Returns the pieces of content that was not uploaded before. */
export async function* piecesOf(content: Exclude<GivenContent, StagedUpload>): AsyncGenerator<Uint8Array> {
  if (typeof content === 'string') yield Buffer.from(content)
  else if (content instanceof Uint8Array) yield content
  else yield* content
}
