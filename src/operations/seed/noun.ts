import { applySeed } from './apply-seed.js'
import { exportSeed } from './export-seed.js'

export const noun = {
  name: 'seed',
  summary: 'Load or export test data',
  operations: [applySeed, exportSeed],
}
