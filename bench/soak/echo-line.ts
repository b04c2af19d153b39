/** Runs the first command line that every user types, a thousand times with the real program. */
import t from 'tap'
import { createMachine } from '../../test/support/process.js'

const ECHO_LINE = `echo '{"type":"card","data":{"number":"4242424242424242"}}' | coffer token create --output json`

const RUNS = 1000

t.setTimeout(30 * 60_000)

t.test('the first command line that every user types succeeds a thousand times in a row', async (t) => {
  const machine = await createMachine()
  t.teardown(() => machine.remove())
  for (let run = 0; run < RUNS; run++) {
    const { code, stdout, stderr } = await machine.bash(ECHO_LINE)
    if (code !== 0 || stderr !== '' || JSON.parse(stdout).data.number !== 'XXXXXXXXXXXX4242')
      throw new Error(`run ${run} ended with ${code}: ${stdout}${stderr}`)
  }
  const list = JSON.parse((await machine.coffer(['token', 'list', '--size', '1'])).stdout)
  t.equal(list.pagination.total_items, RUNS)
})
