/** The package `pgpass`, which comes with `pg`. */
declare module 'pgpass' {
  export type Asked = Readonly<Record<'host' | 'port' | 'database' | 'user', unknown>>
  /** Calls back with the password from the file that `PGPASSFILE` specifies (default: `~/.pgpass`). */
  export default function findInPassFile(asked: Asked, done: (password: string | undefined) => void): void
}
