/** The paths of the script of the card fields. This module is loaded with each server. */

const OWN = '/elements/client/index.js'

/** The packages ask their host for a script with the version in its path. */
const HOSTED = /^\/web-elements\/[\w.-]{1,40}\/(?:client\/|bundle\/)?index\.js$/

/** Returns the pattern of the path, for the access log. Undefined for other paths. */
export function findElements(path: string): string | undefined {
  if (path === OWN) return OWN
  return HOSTED.test(path) ? '/web-elements/{version}/client/index.js' : undefined
}
