import t from 'tap'
import {
  checkContainers,
  containerAncestors,
  containerSet,
  containerSetId,
  isContainerPath,
  isContainerWithin,
} from '../../src/domain/access/container.js'
import { metadataLookups, searchField, tokenFields } from '../../src/domain/records/index-fields.js'
import type { PropertyErrors } from '../../src/errors.js'

function check(value: unknown): { containers: string[]; errors: PropertyErrors } {
  const errors: PropertyErrors = {}
  return { containers: checkContainers(value, 'containers', errors), errors }
}

t.test(
  'a path starts and ends with a slash and has letters, digits, hyphens and underscores between',
  async (t) => {
    for (const path of ['/', '/general/high/', '/a/', '/A-1_b/2/', `/${'x'.repeat(398)}/`])
      t.ok(isContainerPath(path), path)
    const refused = [
      '',
      'a',
      '/a',
      'a/',
      '//',
      '/a//b/',
      '/a b/',
      '/ä/',
      '/a.b/',
      '/a/\n',
      '/../',
      '/%2f/',
      `/${'x'.repeat(399)}/`,
    ]
    for (const path of refused) t.notOk(isContainerPath(path), JSON.stringify(path))
  },
)

t.test('containers are kept in the order given, without repetitions', async (t) => {
  t.strictSame(check(['/b/', '/a/', '/b/']), { containers: ['/b/', '/a/'], errors: {} })
})

t.test('bad containers are named by their place', async (t) => {
  const rule =
    'must be a path that starts and ends with "/" and whose segments are letters, digits, "-" or "_", such as "/general/high/"; at most 400 characters'
  t.strictSame(check(['/a/', 'b', 3]), {
    containers: [],
    errors: { 'containers[1]': [rule], 'containers[2]': [rule] },
  })
  const shape = 'must be an array of container paths such as "/general/high/"'
  t.strictSame(check('/a/').errors, { containers: [shape] })
  t.strictSame(check({ 0: '/a/' }).errors, { containers: [shape] })
  t.strictSame(check([]).errors, { containers: ['must name at least one container'] })
})

t.test('a token has at most 20 containers, and 100 with those above them', async (t) => {
  const some = (count: number, below = '') =>
    Array.from({ length: count }, (_, index) => `/c${index}/${below}`)
  t.strictSame(check(some(20)).errors, {})
  t.strictSame(check(some(21)).errors, { containers: ['must name at most 20 containers'] })
  t.strictSame(check(some(19, 'a/b/c/d/')).errors, {})
  const message = 'must have at most 100 distinct containers on and above them'
  t.strictSame(check(some(20, 'a/b/c/d/')).errors, { containers: [message] })
})

t.test('the ancestors of a path are itself and all above, the root last', async (t) => {
  t.strictSame(containerAncestors('/a/b/c/'), ['/a/b/c/', '/a/b/', '/a/', '/'])
  t.strictSame(containerAncestors('/'), ['/'])
  for (const ancestor of containerAncestors('/a/b/')) t.ok(isContainerWithin('/a/b/', ancestor), ancestor)
  t.notOk(isContainerWithin('/ab/', '/a/'), 'a name that only begins alike is not above')
  t.notOk(isContainerWithin('/a/', '/a/b/'))
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
  t.strictSame(pairs(tokenFields(record)), expected)
  t.strictSame(pairs(tokenFields({ ...record, modified_by: 'changer' })), [
    ...expected,
    ['modified_by', 'changer'],
  ])
})

t.test('metadata and search values are looked up whatever their case', async (t) => {
  const fields = (name: string) => ({ field: `${name}.Key`, value: 'éve' })
  t.strictSame(metadataLookups('Key', 'ÉVE'), [fields('entry'), fields('folded')])
  t.strictSame(metadataLookups('Key', 'ÉVE', true), [{ field: 'entry.Key', value: 'ÉVE' }])
  t.strictSame(searchField('ÉVE'), { field: 'search', value: 'éve' })
})
