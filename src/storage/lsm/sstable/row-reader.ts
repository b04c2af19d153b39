/**
 * Reads rows of one table for one answer. If rows are next to each other in the file, one read fetches several rows.
 */
import type { Row } from '../../engine.js'
import { ROWS } from './format.js'
import type { SSTable } from './reader.js'

/**
 * The size, in bytes, of the first read of several rows. Each further read is four times as large, up to the maximum.
 */
const FIRST_PIECE = 4 * 1024
const MAX_PIECE = 64 * 1024
/**
 * Two rows count as neighbors if their numbers differ by at most this. There can be other rows between two neighbors,
 * because dead rows are skipped.
 */
const MAX_STEP = 4

/**
 * Requires: a reader is used within one synchronous call. After this call, rows may be overwritten, and the reader
 * would return old bytes.
 */
export class RowReader {
  readonly #sstable: SSTable
  #last = Number.NaN
  #pieceBytes = 0
  #piece: Buffer = Buffer.alloc(0)
  #pieceAt = 0

  constructor(sstable: SSTable) {
    this.#sstable = sstable
  }

  read(number: number, most: number): Row {
    const step = number - this.#last
    this.#last = number
    const isNeighbor = Math.abs(step) <= MAX_STEP
    this.#pieceBytes = isNeighbor ? Math.min(MAX_PIECE, Math.max(FIRST_PIECE, this.#pieceBytes)) : 0
    if (!isNeighbor) return this.#sstable.row(number, most)
    return this.#sstable.row(number, most, (offset, length) => this.#readNear(offset, length, step < 0))
  }

  #readNear(offset: number, length: number, isDescending: boolean): Buffer {
    const isRead = offset >= this.#pieceAt && offset + length <= this.#pieceAt + this.#piece.length
    if (!isRead) {
      const size = Math.max(length, this.#pieceBytes)
      this.#pieceBytes *= 4
      const end = this.#sstable.footer.sections[ROWS]!.start
      this.#pieceAt = isDescending ? Math.max(0, offset + length - size) : offset
      this.#piece = this.#sstable.readExactly(
        this.#pieceAt,
        Math.min(end, isDescending ? offset + length : offset + size) - this.#pieceAt,
      )
    }
    return this.#piece.subarray(offset - this.#pieceAt, offset - this.#pieceAt + length)
  }
}
