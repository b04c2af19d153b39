import { randomBytes } from 'node:crypto'
import t from 'tap'
import { formatPublicKey, readKeyExpiry } from '../../src/domain/encryption/client-key.js'
import { readJwe, readPlaintext } from '../../src/domain/encryption/jwe.js'
import { encryptLikePhones, encryptText, encryptWithJose } from '../support/encrypt.js'

const key = { key_id: 'a key', public_key_pem: formatPublicKey(Buffer.alloc(32, 9)) }
const good = encryptLikePhones({ a: 1 }, key)
const [header = '', , nonce = '', ciphertext = '', tag = ''] = good.split('.')
const withHeader = (members: Record<string, unknown>) => encryptLikePhones(1, key, { header: members })
const withText = (headerText: string) => encryptLikePhones(1, key, { headerText })
const epk = (members: Record<string, unknown>) =>
  withHeader({ epk: { kty: 'OKP', crv: 'X25519', x: Buffer.alloc(32, 3).toString('base64url'), ...members } })

t.test('an encrypted text (JWE) has five parts, and the second part is empty', async (t) => {
  t.match(readJwe(good), { kid: 'a key', parts: { nonce: Buffer.alloc(12, 7) } })
  const wrong: Record<string, unknown> = {
    'no text': 1,
    'no parts': 'eyJhbGciOiJFQ0RILUVTIn0',
    empty: '',
    'four parts': [header, '', nonce, ciphertext].join('.'),
    'six parts': `${good}.`,
    'an encrypted key': [header, 'AAAA', nonce, ciphertext, tag].join('.'),
    'a short nonce': [header, '', nonce.slice(4), ciphertext, tag].join('.'),
    'a truncated tag': [header, '', nonce, ciphertext, tag.slice(0, -6)].join('.'),
    'no tag': [header, '', nonce, ciphertext, ''].join('.'),
    'a tag with other unused bits': [header, '', nonce, ciphertext, `${tag.slice(0, -1)}B`].join('.'),
    'padding in the ciphertext': [header, '', nonce, `${ciphertext}=`, tag].join('.'),
    'a character alone': [
      header,
      '',
      nonce,
      `${ciphertext.slice(0, -(ciphertext.length % 4) || undefined)}A`,
      tag,
    ].join('.'),
    'white space': ` ${good}`,
    'a line break': `${good}\n`,
    'JSON serialization': JSON.stringify({ protected: header, iv: nonce, ciphertext, tag }),
    'too long': [header, '', nonce, 'A'.repeat(1024 * 1024), tag].join('.'),
  }
  for (const [name, jwe] of Object.entries(wrong)) t.equal(readJwe(jwe), undefined, name)
})

t.test(
  'the header of a JWE must name the supported algorithms, and must have no member that changes their meaning',
  async (t) => {
    const wrong: Record<string, string> = {
      'alg dir': withHeader({ alg: 'dir' }),
      'alg with key wrapping': withHeader({ alg: 'ECDH-ES+A256KW' }),
      'alg RSA-OAEP': withHeader({ alg: 'RSA-OAEP' }),
      'no alg': withHeader({ alg: undefined }),
      'alg in another case': withHeader({ alg: 'ecdh-es' }),
      'enc A128GCM': withHeader({ enc: 'A128GCM' }),
      'enc with CBC': withHeader({ enc: 'A256CBC-HS512' }),
      zip: withHeader({ zip: 'DEF' }),
      'zip null': withHeader({ zip: null }),
      crit: withHeader({ crit: ['exp'] }),
      'crit empty': withHeader({ crit: [] }),
      'no epk': withHeader({ epk: undefined }),
      'epk that is no object': withHeader({ epk: ['OKP'] }),
      'epk of P-256': epk({ kty: 'EC', crv: 'P-256' }),
      'epk of X448': epk({ crv: 'X448' }),
      'epk of Ed25519': epk({ crv: 'Ed25519' }),
      'epk with 31 bytes': epk({ x: Buffer.alloc(31, 3).toString('base64url') }),
      'epk with 33 bytes': epk({ x: Buffer.alloc(33, 3).toString('base64url') }),
      'epk with padding': epk({ x: `${Buffer.alloc(32, 3).toString('base64url')}=` }),
      'epk that is a number': epk({ x: 3 }),
      'kid that is a number': withHeader({ kid: 1 }),
      'kid null': withHeader({ kid: null }),
      'an empty kid': withHeader({ kid: '' }),
      'a long kid': withHeader({ kid: 'k'.repeat(101) }),
      'apu that is no base64url': withHeader({ apu: 'a+b' }),
      'a long apv': withHeader({ apv: Buffer.alloc(257).toString('base64url') }),
      'a large header': withHeader({ x: 'y'.repeat(4000) }),
      'many members': withHeader(Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`m${at}`, 1]))),
      'a deep header': withHeader({ x: JSON.parse(`${'['.repeat(70)}${']'.repeat(70)}`) }),
      'a repeated member': withText(
        '{"alg":"dir","alg":"ECDH-ES","kid":"a key","enc":"A256GCM","epk":{"kty":"OKP","crv":"X25519","x":"$x"}}',
      ),
      'a repeated member of epk': withText(
        '{"alg":"ECDH-ES","kid":"a key","enc":"A256GCM","epk":{"kty":"OKP","crv":"X25519","x":"","x":"$x"}}',
      ),
      'a name that reaches the prototype': withText(
        '{"alg":"ECDH-ES","__proto__":{},"enc":"A256GCM","epk":{"kty":"OKP","crv":"X25519","x":"$x"}}',
      ),
      'no JSON': withText('{"alg":"ECDH-ES"'),
      'an array': withText('[]'),
    }
    for (const [name, jwe] of Object.entries(wrong)) t.equal(readJwe(jwe), undefined, name)
    const right = {
      'no kid': withHeader({ kid: undefined }),
      'other members': withHeader({ typ: 'JWE', cty: 'json' }),
      'with parties': await encryptWithJose(1, key, {
        parties: { apu: Buffer.from('a'), apv: Buffer.from('b') },
      }),
      'a large plaintext': encryptText(randomBytes(500_000), key),
    }
    for (const [name, jwe] of Object.entries(right)) t.ok(readJwe(jwe), name)
  },
)

t.test('the decrypted plaintext of a JWE must be strict JSON', async (t) => {
  const read = (text: string | Uint8Array) => readPlaintext(Buffer.from(text), 10)
  t.same([read('{"a":[1]}'), read('null'), read('"x"')], [{ a: [1] }, null, 'x'])
  for (const text of [
    '',
    '{',
    '{"a":1,"a":2}',
    '\ufeff1',
    '[1,2,3,4,5,6,7,8,9,10]',
    Buffer.from([0x22, 0xff, 0x22]),
  ])
    t.equal(read(text), undefined)
})

t.test('the expiry of a key must be in the future and at most one year ahead', async (t) => {
  const now = Date.parse('2030-01-15T12:00:00Z')
  const dateOf = (text?: string) => new Date(readKeyExpiry(text, now)).toISOString()
  t.equal(dateOf(), '2031-01-15T12:00:00.000Z')
  t.equal(dateOf('2031-01-15T12:00:00Z'), '2031-01-15T12:00:00.000Z')
  t.equal(dateOf('2030-01-15T12:00:00.001Z'), '2030-01-15T12:00:00.001Z')
  t.throws(() => dateOf('2031-01-15T12:00:00.001Z'), /at most one year/)
  t.throws(() => dateOf('2032-01-15'), /at most one year/)
  t.throws(() => dateOf('2030-01-15T12:00:00Z'), /in the future/)
  t.throws(() => dateOf(''), /must be an existing date/)
  t.equal(
    new Date(readKeyExpiry(undefined, Date.parse('2028-02-29T00:00:00Z'))).toISOString(),
    '2029-03-01T00:00:00.000Z',
  )
})
