/**
 * A process that copies a vault or restores a backup, and kills itself with SIGKILL just before a certain call. The
 * arguments are the source, the target, the name of the call, and the number of the call. The name of the call is a
 * method of `Files`, or `send` for statements to a store. The variable `COPY_KEY` has the text of the key file.
 */
import { nodeFiles } from '../../src/storage/node-files.js'
import { Connection } from '../../src/storage/postgres/pool.js'
import { copyVault, restoreVault } from '../../src/vault/copy.js'

const [source = '', target = '', kind = '', number = ''] = process.argv.slice(2)
let left = Number(number)
const note = (effect: string) => {
  if (effect === kind && --left === 0) process.kill(process.pid, 'SIGKILL')
}

const { send } = Connection.prototype
Connection.prototype.send = function (statements) {
  note('send')
  return send.call(this, statements)
}
const files = new Proxy(nodeFiles(), {
  get(own, name) {
    const value = Reflect.get(own, name)
    if (typeof value !== 'function') return value
    return (...args: unknown[]) => {
      note(String(name))
      return value.apply(own, args)
    }
  },
})
const locate = (directory: string) => ({ directory, pid: process.pid, notice: () => {}, files })
const choose = async () => ({ kind: 'key-file', text: process.env.COPY_KEY! }) as const
if (source.endsWith('.backup')) await restoreVault(locate(target), source, choose, () => {})
else await copyVault(locate(source), locate(target), choose, () => {})
