import t from 'tap'
import {
  checkContainers,
  containerAncestors,
  containerSet,
  containerSetId,
} from '../../src/domain/access/container.js'
import { metadataLookups, searchField, tokenFields } from '../../src/domain/records/index-fields.js'
import type { PropertyErrors } from '../../src/errors.js'

function check(value: unknown): { containers: string[]; errors: PropertyErrors } {
  const errors: PropertyErrors = {}
  return { containers: checkContainers(value, 'containers', errors), errors }
}

t.test('a token has at most 20 containers, and 100 with those above them', async (t) => {
  const some = (count: number, below = '') =>
    Array.from({ length: count }, (_, index) => `/c${index}/${below}`)
  t.strictSame(check(some(20)).errors, {})
  t.strictSame(check(some(21)).errors, {
    containers: ['must have at least one and at most 20 container paths'],
  })
  t.strictSame(check(some(19, 'a/b/c/d/')).errors, {})
  const message = 'must have at most 100 containers on and above them'
  t.strictSame(check(some(20, 'a/b/c/d/')).errors, { containers: [message] })
})

t.test('the ancestors of a path are itself and all above, the root last', async (t) => {
  t.strictSame(containerAncestors('/a/b/c/'), ['/a/b/c/', '/a/b/', '/a/', '/'])
  t.strictSame(containerAncestors('/'), ['/'])
})

t.test('sets are equal whatever the order and repetitions', async (t) => {
  t.strictSame(containerSet(['/b/', '/a/', '/b/']), ['/a/', '/b/'])
  t.equal(containerSetId(['/b/', '/a/', '/b/']), '["/a/","/b/"]')
  t.not(containerSetId(['/a/']), containerSetId(['/a/', '/b/']))
})

t.test('a token can be looked up by all its facts', async (t) => {
  const record = {
    id: 'abc',
    tenant_id: 'tenant',
    type: 'token',
    data: 'SECRET',
    fingerprint: 'print',
    fingerprint_expression: '{{ data }}',
    containers: ['/a/b/', '/a/'],
    metadata: { Customer: 'ÉVE', toString: 'x' },
    created_by: 'maker',
    created_at: '2026-11-20T12:00:00.000+00:00',
  }
  const expected = [
    ['type', 'token'],
    ['entry.Customer', 'ÉVE'],
    ['folded.Customer', 'éve'],
    ['entry.toString', 'x'],
    ['container', '/a/b/'],
    ['container', '/a/'],
    ['ancestor', '/a/b/'],
    ['ancestor', '/a/'],
    ['ancestor', '/'],
    ['containers', '["/a/","/a/b/"]'],
    ['fingerprint', 'print'],
    ['created_by', 'maker'],
  ]
  const pairs = (lookups: { field: string; value: string }[]) =>
    lookups.map(({ field, value }) => [field, value])
  t.strictSame(pairs(tokenFields(record)), [...expected, ['month', '2026-11']])
  const changed = { ...record, modified_by: 'changer', expires_at: '2030-01-01T00:00:00.000+00:00' }
  t.strictSame(pairs(tokenFields(changed)), [...expected, ['modified_by', 'changer']])
})

t.test('metadata and search values are looked up whatever their case', async (t) => {
  const fields = (name: string) => ({ field: `${name}.Key`, value: 'éve' })
  t.strictSame(metadataLookups('Key', 'ÉVE'), [fields('entry'), fields('folded')])
  t.strictSame(metadataLookups('Key', 'ÉVE', true), [{ field: 'entry.Key', value: 'ÉVE' }])
  t.strictSame(searchField('ÉVE'), { field: 'search', value: 'éve' })
})
