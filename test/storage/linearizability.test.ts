/** The check of histories finds what no order explains. */
import t from 'tap'
import { isLinearizable, type Operation } from './linearizability.js'

const done = (kind: Operation['kind'], began: number, ended: number, value?: string): Operation => ({
  ...{ kind, value, began, ended, outcome: 'done' },
})

t.test('a history is explained by some order, or by none', async (t) => {
  const create = done('create', 0, 1, 'a')
  const update = done('update', 2, 9, 'b')
  t.ok(isLinearizable([create, update, done('read', 3, 4, 'a'), done('read', 5, 6, 'b')]))
  t.notOk(isLinearizable([create, update, done('read', 3, 4, 'b'), done('read', 5, 6, 'a')]), 'back again')
  t.notOk(isLinearizable([create, done('read', 2, 3)]), 'a stale read')
  t.notOk(isLinearizable([create, done('create', 0, 1, 'b')]), 'two were the first')
  t.notOk(isLinearizable([create, done('delete', 2, 3), done('update', 4, 5, 'c')]))
  t.ok(isLinearizable([create, { ...update, outcome: 'unknown' }, done('read', 20, 21, 'a')]))
  t.ok(isLinearizable([create, { ...update, outcome: 'unknown' }, done('read', 20, 21, 'b')]))
})
