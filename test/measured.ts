/**
 * Measures the coverage of tests in the folders that `coverage.ts` checks. `npm test` loads this module before the
 * tests in each test process.
 *
 * A measured process needs about a quarter more CPU. For this reason, the other tests and all child processes are not
 * measured. The variable `NODE_V8_COVERAGE` is not used, because this variable would measure all of these processes.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { AREAS } from './areas.js'

const COVERAGE = new URL('../coverage/tmp', import.meta.url).pathname

// The test cases in `parity` run every operation, so their coverage is measured too.
const isMeasured = [...AREAS, 'parity'].some((area) => process.argv[1]?.includes(`/test/${area}/`))
if (isMeasured) {
  const session = new Session()
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  process.on('exit', () => {
    session.post('Profiler.takePreciseCoverage', (error, coverage) => {
      if (error !== null) throw error
      mkdirSync(COVERAGE, { recursive: true })
      writeFileSync(`${COVERAGE}/coverage-${process.pid}-${Date.now()}-0.json`, JSON.stringify(coverage))
    })
  })
}
