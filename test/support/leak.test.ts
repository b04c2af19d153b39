import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { findLeaks, readTree } from './leak.js'

const SECRET = '4242-Größe "x"'
const bytesOf = Buffer.from(SECRET)
const hex = bytesOf.toString('hex')

const around = (middle: string | Uint8Array) =>
  Buffer.concat([Buffer.from('before '), Buffer.from(middle), Buffer.from(' after')])

const encodingsIn = (bytes: Uint8Array, secret = SECRET) =>
  findLeaks([secret], [{ name: 'hay', bytes }]).map(({ encoding }) => encoding)

t.test('a secret is found in every spelling', async (t) => {
  const spellings: [string, string | Uint8Array][] = [
    ['plain', SECRET],
    ['reversed', [...SECRET].reverse().join('')],
    ['reversed bytes', Buffer.from(bytesOf).reverse()],
    ['UTF-16LE', Buffer.from(SECRET, 'utf16le')],
    ['UTF-16BE', Buffer.from(SECRET, 'utf16le').swap16()],
    ['JSON', JSON.stringify({ a: SECRET })],
    ['JSON escapes of what is not ASCII', '4242-Gr\\u00f6\\u00dfe "x"'],
    ['JSON escapes of what is not ASCII, capitals', '4242-Gr\\u00F6\\u00DFe "x"'],
    ['hexadecimal', hex],
    ['hexadecimal, capitals', hex.toUpperCase()],
    ['hexadecimal with spaces', `<Buffer ${hex.replace(/(..)(?!$)/g, '$1 ')}>`],
    ['hexadecimal with colons', hex.replace(/(..)(?!$)/g, '$1:')],
    ['percent encoding', `?q=${encodeURIComponent(SECRET)}`],
    ['form encoding', new URLSearchParams({ q: SECRET }).toString()],
    ['percent encoding of everything', hex.replace(/(..)/g, '%$1')],
    ['decimal bytes', JSON.stringify(bytesOf)],
    ['decimal bytes with spaces', [...bytesOf].join(', ')],
  ]
  for (const [encoding, spelling] of spellings) {
    t.ok(encodingsIn(around(spelling)).includes(encoding), encoding)
  }
  const escapes = [...'secret-1']
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')
  t.same(encodingsIn(around(escapes), 'secret-1'), ['JSON escapes'])
})

t.test('base64 is found at every alignment, whatever stands around the secret', async (t) => {
  const any = fc.uint8Array({ maxLength: 9 })
  fc.assert(
    fc.property(any, any, fc.constantFrom('base64', 'base64url'), (before, after, encoding) => {
      const text = Buffer.concat([before, bytesOf, after]).toString(encoding as 'base64')
      return encodingsIn(Buffer.from(text)).some((found) => found.startsWith('base64'))
    }),
  )
  t.same(encodingsIn(Buffer.from(bytesOf.toString('base64'))), ['base64 at 0'])
  t.pass('holds for 100 surroundings')
})

t.test('a leak says which secret, where, how and at which byte, and nothing else is one', async (t) => {
  t.same(encodingsIn(Buffer.from('4242-Größe "y", 4242 Größe and the rest of an innocent text')), [])
  const bytes = around(SECRET)
  t.same(encodingsIn(bytes.subarray(0, 10)), [], 'beside a view into a larger buffer nothing is searched')
  const haystacks = ['nothing', 'ab second-secret'].map((text) => ({ name: text, bytes: Buffer.from(text) }))
  const leak = { secret: 'second-secret', name: 'ab second-secret', encoding: 'plain', offset: 3 }
  t.same(findLeaks(['first-secret', 'second-secret'], haystacks), [leak])
  t.throws(() => findLeaks(['12345'], []), { message: /6 characters or more/ })
  const directory = t.testdir({ '.hidden': 'alpha', sub: { 'secret-name': 'beta' } })
  await symlink('secret-target', join(directory, 'link'))
  const found = findLeaks(['secret-name', 'secret-target'], await readTree(directory))
  t.same(
    found.map(({ name }) => name),
    ['(names)', 'link'],
  )
})
