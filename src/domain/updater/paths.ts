/** The addresses of the files of batch jobs. */
const FILES_PATH = '/account-updater/files/'

export const FILES_ROUTE = `${FILES_PATH}{id}`

const UUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i

/** Returns empty text if the id is invalid, and undefined if the path is not below {@link FILES_PATH}. */
export function jobOfPath(path: string): string | undefined {
  if (!path.startsWith(FILES_PATH)) return undefined
  const id = path.slice(FILES_PATH.length)
  return UUID.test(id) ? id.toLowerCase() : ''
}

export function addressOfFile(base: string, id: string, secret: string): string {
  return `${base}${FILES_PATH}${id}?secret=${secret}`
}
