import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { findLeaks, readTree } from './leak.js'

const SECRET = '4242-Größe "x"'
const bytesOf = Buffer.from(SECRET)
const hex = bytesOf.toString('hex')

const around = (middle: string | Uint8Array) =>
  Buffer.concat([Buffer.from('before '), Buffer.from(middle), Buffer.from(' after')])

const encodingsIn = (bytes: Uint8Array, secret = SECRET) =>
  findLeaks([secret], [{ name: 'hay', bytes }]).map(({ encoding }) => encoding)

t.test('findLeaks finds a secret in each encoding that it knows', async (t) => {
  const spellings: [string, string | Uint8Array][] = [
    ['plain', SECRET],
    ['reversed', [...SECRET].reverse().join('')],
    ['reversed bytes', Buffer.from(bytesOf).reverse()],
    ['UTF-16LE', Buffer.from(SECRET, 'utf16le')],
    ['UTF-16BE', Buffer.from(SECRET, 'utf16le').swap16()],
    ['JSON', JSON.stringify({ a: SECRET })],
    ['JSON escapes of non-ASCII characters', '4242-Gr\\u00f6\\u00dfe "x"'],
    ['JSON escapes of non-ASCII characters, capitals', '4242-Gr\\u00F6\\u00DFe "x"'],
    ['hexadecimal', hex],
    ['hexadecimal, capitals', hex.toUpperCase()],
    ['hexadecimal with spaces', `<Buffer ${hex.replace(/(..)(?!$)/g, '$1 ')}>`],
    ['hexadecimal with colons', hex.replace(/(..)(?!$)/g, '$1:')],
    ['percent encoding', `?q=${encodeURIComponent(SECRET)}`],
    ['form encoding', new URLSearchParams({ q: SECRET }).toString()],
    ['percent encoding of every byte', hex.replace(/(..)/g, '%$1')],
    ['decimal bytes', JSON.stringify(bytesOf)],
    ['decimal bytes with spaces', [...bytesOf].join(', ')],
    ...['', 'a', 'ab'].flatMap((before, at): [string, string][] => [
      [`base64 at ${at}`, Buffer.from(`${before}${SECRET}?`).toString('base64')],
      [`base64url at ${at}`, Buffer.from(`${before}${SECRET}?`).toString('base64url')],
    ]),
  ]
  for (const [encoding, spelling] of spellings) {
    const found = encodingsIn(around(spelling))
    t.ok(
      found.some((each) => each === encoding || encoding.replace('url', '') === each),
      encoding,
    )
  }
})

t.test(
  'findLeaks reports a leak with its secret, place, encoding and offset, and reports nothing for other text',
  async (t) => {
    t.same(encodingsIn(Buffer.from('4242-Größe "y", 4242 Größe and the rest of an innocent text')), [])
    t.same(
      encodingsIn(around(SECRET).subarray(0, 10)),
      [],
      'bytes outside of a view of a buffer are not searched',
    )
    const haystacks = ['nothing', 'ab second-secret'].map((text) => ({
      name: text,
      bytes: Buffer.from(text),
    }))
    const leak = { secret: 'second-secret', name: 'ab second-secret', encoding: 'plain', offset: 3 }
    t.same(findLeaks(['first-secret', 'second-secret'], haystacks), [leak])
    t.throws(() => findLeaks(['12345'], []), { message: /6 characters or more/ })
    const directory = t.testdir({ '.hidden': 'alpha', sub: { 'secret-name': 'beta' } })
    await symlink('secret-target', join(directory, 'link'))
    const found = findLeaks(['secret-name', 'secret-target'], await readTree(directory))
    t.match(found, [{ name: '(names)' }, { name: 'link' }])
  },
)
