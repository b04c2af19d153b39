import t from 'tap'
import { registry } from '../../src/operations/all.js'
import { applicationOutput } from '../../src/operations/application/application-record.js'
import { editable } from '../../src/page/edit.js'

t.test(
  'the dashboard sends an edited application with every attribute that it has read and that the update accepts',
  async (t) => {
    const read = Object.fromEntries(Object.keys(applicationOutput.properties).map((name) => [name, name]))
    const { properties = {} } = registry.operations.find(({ name }) => name === 'app update')!.input
    const taken = Object.keys(properties).filter((name) => name !== 'id')
    t.strictSame(Object.keys(editable(read)).sort(), taken.sort())
    t.equal(editable({ ...read, later: 1 }).later, 1, 'an attribute that is added later too')
  },
)
