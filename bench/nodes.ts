/**
 * `npm run test:nodes` runs the tests of reactors with each supported version of Node. The binaries of Node come from
 * the npm registry. Reactor children get different flags in each version of Node, so each version must be tested.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const MAJORS = ['20', '22', '24', '26']
const TESTS = [
  'reactor/runtime',
  'reactor/modules',
  'reactor/programs',
  'reactor/child',
  'operations/reactor',
  'abuse/reactors/attacks',
  'abuse/reactors/walk',
  'abuse/reactors/sandbox',
  'abuse/reactors/processes',
]

const { platform, arch } = process
const folder = mkdtempSync(join(tmpdir(), 'coffer-nodes-'))
let failures = 0
for (const major of MAJORS) {
  const node = fetchNode(major)
  if (node === undefined) {
    console.log(`Node ${major}: skipped, because the registry has no binary for ${platform} on ${arch}`)
    continue
  }
  for (const name of TESTS) {
    const file = fileURLToPath(new URL(`../test/${name}.test.js`, import.meta.url))
    const { status, stdout } = spawnSync(node, [file], { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
    const counts = /^# (\{ total: .*\})$/m.exec(stdout)?.[1] ?? 'no count'
    console.log(`Node ${major}: ${name} ${status === 0 ? 'passed' : 'FAILED'} ${counts}`)
    for (const [line] of stdout.matchAll(/^ +# Node .*$/gm)) console.log(line)
    if (status !== 0) failures += 1
  }
}
rmSync(folder, { recursive: true, force: true })
process.exitCode = failures === 0 ? 0 : 1

/**
 * Installs the newest binary of this major version of Node. Returns the path of the binary, or undefined if the binary
 * is not installed.
 */
function fetchNode(major: string): string | undefined {
  const name = `node-${platform}-${arch}`
  const prefix = join(folder, major)
  const options = ['--no-audit', '--no-fund', '--no-save', '--ignore-scripts', '--prefix', prefix]
  const { status } = spawnSync('npm', ['install', ...options, `${name}@${major}`], { stdio: 'ignore' })
  const node = join(prefix, 'node_modules', name, 'bin', 'node')
  return status === 0 && existsSync(node) ? node : undefined
}
