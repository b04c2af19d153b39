/**
 * A proxy between servers and a database. The proxy can switch to another database, and can cut a connection during a
 * commit.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

export class CuttingProxy {
  /** Number of commits whose answer was withheld. */
  cuts = 0
  /** If true, the proxy accepts connections but does not forward any data. */
  isSilent = false
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #path: string
  #isArmed = false

  private constructor(path: string) {
    this.#path = path
    this.#server = createServer((client) => this.#serve(client))
  }

  static async open(path: string): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(path)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  leadTo(path: string): void {
    this.#path = path
  }

  /** The proxy forwards the next commit and then ends the connection before the client receives the answer. */
  cutNextCommit(): void {
    this.#isArmed = true
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }

  #serve(client: Socket): void {
    const database = connect(this.#path)
    const both = [client, database]
    let isCutting = false
    const end = () => {
      // If a commit failed, or its connection ended for another reason, the commit does not count as cut.
      if (isCutting) this.#isArmed = true
      isCutting = false
      for (const socket of both) {
        socket.destroy()
        this.#sockets.delete(socket)
      }
    }
    for (const socket of both) {
      this.#sockets.add(socket)
      socket.on('close', end)
      socket.on('error', end)
    }
    client.on('data', (bytes) => {
      if (this.#isArmed && bytes.includes('commit')) {
        this.#isArmed = false
        isCutting = true
      }
      if (!this.isSilent) database.write(bytes)
    })
    database.on('data', (bytes) => {
      if (isCutting && bytes.includes('COMMIT')) {
        this.cuts++
        isCutting = false
        return end()
      }
      if (isCutting && bytes.includes('ROLLBACK')) {
        isCutting = false
        this.#isArmed = true
      }
      if (!this.isSilent) client.write(bytes)
    })
  }
}
