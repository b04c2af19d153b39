/** The package `pgpass`, which comes with `pg`. */
declare module 'pgpass' {
  export type Asked = Readonly<Record<'host' | 'port' | 'database' | 'user', unknown>>
  /** Calls back with the password of the file that `PGPASSFILE` names, or `~/.pgpass`. */
  export default function findInPassFile(asked: Asked, done: (password: string | undefined) => void): void
}
