import fc from 'fast-check'
import t from 'tap'
import { base58 } from '../../src/domain/text/base58.js'

const hex = (text: string) => Uint8Array.from(Buffer.from(text, 'hex'))

t.test('base58 encodes the bytes of published examples to the published texts', async (t) => {
  // The examples are from draft-msporny-base58 and from Bitcoin Core's base58_encode_decode.json.
  const table: [bytes: Uint8Array, text: string][] = [
    [
      new TextEncoder().encode('The quick brown fox jumps over the lazy dog.'),
      'USm3fpXnKG5EUBx2ndxBDMPVciP5hGey2Jh4NDv6gmeo1LkMeiKrLJUUBk6Z',
    ],
    [hex('0000287fb4cd'), '11233QC4'],
    [hex('00eb15231dfceb60925886b67d065299925915aeb172c06647'), '1NS17iag9jJgTHD1VXjvLCEnZuQ3rJDE9L'],
    [hex('00000000000000000000'), '1111111111'],
  ]
  for (const [bytes, text] of table) t.equal(base58(bytes), text)
})

t.test(
  'padded base58 of 32 bytes has 43 or 44 characters, and padded base58 of 16 bytes has 22 characters',
  async (t) => {
    t.equal(base58(new Uint8Array(32), 43), '1'.repeat(43))
    t.equal(base58(new Uint8Array(32).fill(255), 43).length, 44)
    t.equal(base58(hex(`00${'01'.repeat(31)}`), 43).length, 43)
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) =>
        /^\w{43,44}$/.test(base58(bytes, 43)),
      ),
    )
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 16, maxLength: 16 }),
        (bytes) => base58(bytes, 22).length === 22,
      ),
    )
  },
)

t.test('a base58 text can be decoded to the original bytes, including leading zeros', async (t) => {
  const alphabet = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 70 }), (bytes) => {
      const text = base58(bytes)
      const value = [...text].reduce((sum, digit) => sum * 58n + BigInt(alphabet.indexOf(digit)), 0n)
      const zeros = bytes.findIndex((byte) => byte !== 0)
      const ones = /^1*/.exec(text)![0].length
      return (
        value === BigInt(`0x0${Buffer.from(bytes).toString('hex')}`) &&
        ones === (zeros < 0 ? bytes.length : zeros)
      )
    }),
    { numRuns: 1000 },
  )
  t.pass()
})
