/**
 * Stops the measurement of coverage in tests of folders that `coverage.ts` does not check. A measured process needs
 * about a quarter more CPU. `npm test` loads this module before the tests in each test process.
 */
import { stopCoverage } from 'node:v8'
import { AREAS } from './areas.js'

// The test cases in `parity` run every operation, so their coverage is measured too.
const isMeasured = [...AREAS, 'parity'].some((area) => process.argv[1]?.includes(`/test/${area}/`))
if (!isMeasured) {
  stopCoverage()
  // Node would otherwise measure the children of this process too.
  delete process.env.NODE_V8_COVERAGE
}
