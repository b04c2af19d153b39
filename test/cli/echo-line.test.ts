import t from 'tap'
import { createMachine, ECHO_LINE } from './binary.js'
import { createVaultHome } from './home.js'

const CARD = '{"type":"card","data":{"number":"4242424242424242"}}'
const LINES_OF_THE_BINARY = 30
const LINES_IN_PROCESS = 200

t.setTimeout(400_000)

t.test('the line that everybody types first works, every time', async (t) => {
  const machine = await createMachine()
  t.teardown(() => machine.remove())
  const ids = new Set<string>()
  for (let run = 0; run < LINES_OF_THE_BINARY; run++) {
    const { code, stdout, stderr } = await machine.bash(ECHO_LINE)
    t.same([code, stderr], [0, ''], `run ${run}`)
    const token = JSON.parse(stdout)
    t.match(token, { type: 'card', data: { number: 'XXXXXXXXXXXX4242' }, containers: ['/pci/high/'] })
    ids.add(token.id)
  }
  const list = JSON.parse((await machine.coffer(['token', 'list', '--size', '1'])).stdout)
  t.same([ids.size, list.pagination.total_items], [LINES_OF_THE_BINARY, LINES_OF_THE_BINARY])
})

t.test('and two hundred times in a row; a thousand in the soak run', async (t) => {
  const home = await createVaultHome(t)
  for (let run = 0; run < LINES_IN_PROCESS; run++) {
    const { code, stdout, stderr } = await home.run(['token', 'create', '--output', 'json'], { stdin: CARD })
    if (code !== 0 || stderr !== '' || !stdout.includes('"number":"XXXXXXXXXXXX4242"'))
      throw new Error(`run ${run} ended with ${code}: ${stdout}${stderr}`)
  }
  t.equal((await home.json(['token', 'list', '--size', '1'])).pagination.total_items, LINES_IN_PROCESS)
})
