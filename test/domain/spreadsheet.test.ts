import t from 'tap'
import { neutralize, restore, toCsvLine } from '../../src/domain/text/spreadsheet.js'

t.test(
  'a cell that a spreadsheet would evaluate gets an apostrophe, and no other cell changes',
  async (t) => {
    const table: [text: string, cell: string][] = [
      ['=HYPERLINK("http://evil.example")', `'=HYPERLINK("http://evil.example")`],
      ['+1', "'+1"],
      ['-1', "'-1"],
      ['@SUM(A1)', "'@SUM(A1)"],
      ['\t=1', "'\t=1"],
      ["'=1", "''=1"],
      ['\uff1d1', "'\uff1d1"],
      ['card-1', 'card-1'],
      ['a=b', 'a=b'],
      ['', ''],
    ]
    for (const [text, cell] of table) {
      t.equal(neutralize(text), cell, text)
      t.equal(restore(cell), text, text)
    }
    t.equal(toCsvLine(['a "b"', 'c,d\ne']), '"a ""b""","c,d\ne"')
  },
)
