/** Secrets in a store: in what its tables hold, and in the files of the database. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { findLeaks, type Haystack } from '../support/leak.js'
import type { PostgresServer } from './postgres-server.js'

/** Where secrets were found, and how many places were searched. */
export async function findStoreLeaks(
  server: PostgresServer,
  address: string,
  secrets: readonly string[],
): Promise<{ leaks: string[]; cells: number }> {
  const client = new pg.Client(address)
  await client.connect()
  const cells: Haystack[] = []
  try {
    await client.query('checkpoint')
    const tables = await client.query("select tablename from pg_tables where tablename like 'coffer%'")
    for (const { tablename: name } of tables.rows)
      for (const row of (await client.query(`select * from ${name}`)).rows)
        for (const cell of Object.values(row))
          cells.push({ name, bytes: Buffer.isBuffer(cell) ? cell : Buffer.from(String(cell)) })
  } finally {
    await client.end()
  }
  const leaks = findLeaks(secrets, cells).map(
    ({ secret, name, encoding }) => `${secret} in ${name}, ${encoding}`,
  )
  const files =
    server.directory === undefined ? [] : readdirSync(server.directory, { recursive: true, encoding: 'utf8' })
  for (const file of files) {
    const path = join(server.directory!, file)
    if (!statSync(path).isFile()) continue
    const bytes = readFileSync(path)
    for (const secret of secrets) if (bytes.includes(secret)) leaks.push(`${secret} in ${file}`)
  }
  return { leaks, cells: cells.length }
}
