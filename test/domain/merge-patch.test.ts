import t from 'tap'
import { mergePatch } from '../../src/domain/json/json.js'

/** RFC 7386, appendix A: original, patch, result. */
const APPENDIX_A: [string, string, string][] = [
  ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
  ['{"a":"b"}', '{"a":null}', '{}'],
  ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
  ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
  ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
  ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
  ['["a","b"]', '["c","d"]', '["c","d"]'],
  ['{"a":"b"}', '["c"]', '["c"]'],
  ['{"a":"foo"}', 'null', 'null'],
  ['{"a":"foo"}', '"bar"', '"bar"'],
  ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
  ['[1,2]', '{"a":"b","c":null}', '{"a":"b"}'],
  ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
]

t.test('the table of RFC 7386 holds', async (t) => {
  for (const [original, patch, result] of APPENDIX_A) {
    t.equal(
      JSON.stringify(mergePatch(JSON.parse(original), JSON.parse(patch))),
      result,
      `${original} + ${patch}`,
    )
  }
})

t.test('names that objects inherit are names like any other', async (t) => {
  const merge = (target: string, patch: string) =>
    JSON.stringify(mergePatch(JSON.parse(target), JSON.parse(patch)))
  t.equal(merge('{"hasOwnProperty":1,"a":2}', '{"a":null}'), '{"hasOwnProperty":1}')
  t.equal(
    merge('{}', '{"constructor":{"name":"x"},"toString":null,"b":1}'),
    '{"constructor":{"name":"x"},"b":1}',
  )
  t.equal(merge('{"toJSON":"x"}', '{"a":1}'), '{"toJSON":"x","a":1}')
  t.equal(merge('{}', '{"__proto__":{"polluted":1}}'), '{"__proto__":{"polluted":1}}')
  t.notOk('polluted' in {})
})
