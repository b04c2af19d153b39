/** The token that the benchmarks create. The JSON of this token has about a kilobyte. */

const FILLER = 'The quick brown fox jumps over the lazy dog. '.repeat(18)

export function makeToken(serial: number) {
  return {
    type: 'token',
    data: { name: `Person ${serial}`, note: FILLER },
    mask: { name: '{{ data.name | reveal_last: 2 }}' },
    metadata: { customer: String(serial % 1000) },
  }
}
