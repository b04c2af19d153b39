import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { createMemoryMeter } from '../../src/reactor/memory.js'

t.test(
  'the memory of a process is read as its own counting has it',
  { skip: process.platform === 'win32' },
  async (t) => {
    for (const platform of process.platform === 'linux' ? ['linux', 'darwin'] : [process.platform]) {
      const meter = createMemoryMeter(platform, { readFileSync, execFileSync })
      const readMiB = meter(process.pid) ?? 0
      const ownMiB = process.memoryUsage.rss() / 2 ** 20
      t.ok(Math.abs(readMiB - ownMiB) < ownMiB / 4, platform, { readMiB, ownMiB })
      t.equal(meter(2 ** 22 + 1), undefined, 'of none there is nothing')
    }
  },
)
