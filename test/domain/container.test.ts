import t from 'tap'
import {
  checkContainers,
  containerAncestors,
  containerSet,
  containerSetId,
} from '../../src/domain/access/container.js'
import type { PropertyErrors } from '../../src/errors.js'

function check(value: unknown): { containers: string[]; errors: PropertyErrors } {
  const errors: PropertyErrors = {}
  return { containers: checkContainers(value, 'containers', errors), errors }
}

t.test('a token may have at most 20 containers, and at most 100 together with their ancestors', async (t) => {
  const some = (count: number, below = '') =>
    Array.from({ length: count }, (_, index) => `/c${index}/${below}`)
  t.strictSame(check(some(20)).errors, {})
  t.strictSame(check(some(21)).errors, {
    containers: ['must have at least one and at most 20 container paths'],
  })
  t.strictSame(check(some(19, 'a/b/c/d/')).errors, {})
  const message = 'must have at most 100 containers, counting the containers above them'
  t.strictSame(check(some(20, 'a/b/c/d/')).errors, { containers: [message] })
})

t.test(
  'the ancestors of a path are the path itself and all paths above it, with the root last',
  async (t) => {
    t.strictSame(containerAncestors('/a/b/c/'), ['/a/b/c/', '/a/b/', '/a/', '/'])
    t.strictSame(containerAncestors('/'), ['/'])
  },
)

t.test('container sets are equal in any order and with any repetition', async (t) => {
  t.strictSame(containerSet(['/b/', '/a/', '/b/']), ['/a/', '/b/'])
  t.equal(containerSetId(['/b/', '/a/', '/b/']), '["/a/","/b/"]')
  t.not(containerSetId(['/a/']), containerSetId(['/a/', '/b/']))
})
