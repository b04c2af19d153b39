/** The module `os`. All values are constants, which reveal nothing about the machine. */

const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGKILL: 9, SIGTERM: 15 }
const ERRORS = { EACCES: 13, ECONNREFUSED: 111, ECONNRESET: 104, ENOENT: 2, EPIPE: 32, ETIMEDOUT: 110 }

export default {
  EOL: '\n',
  devNull: '/dev/null',
  constants: { signals: SIGNALS, errno: ERRORS },
  arch: () => process.arch,
  availableParallelism: () => 1,
  cpus: () => [],
  endianness: () => 'LE',
  freemem: () => 0,
  homedir: () => '/',
  hostname: () => 'localhost',
  loadavg: () => [0, 0, 0],
  machine: () => 'x86_64',
  networkInterfaces: () => ({}),
  platform: () => process.platform,
  release: () => '',
  tmpdir: () => '/tmp',
  totalmem: () => 0,
  type: () => 'Linux',
  uptime: () => 0,
  userInfo: () => ({ username: '', uid: -1, gid: -1, shell: null, homedir: '/' }),
  version: () => '',
}
