import { applySeed } from './apply-seed.js'
import { exportSeed } from './export-seed.js'

export const noun = {
  name: 'seed',
  summary: 'Create known data, and write it down',
  operations: [applySeed, exportSeed],
}
