/** The paths of the script of the card fields. Every server loads this module. */

const OWN = '/elements/client/index.js'

/** Matches the path with which the service's npm packages request the script. This path contains a version. */
const HOSTED = /^\/web-elements\/[\w.-]{1,40}\/(?:client\/|bundle\/)?index\.js$/

/**
 * Returns the pattern of the path, for the access log. Returns undefined if the path is not a path of the
 * script.
 */
export function findElements(path: string): string | undefined {
  if (path === OWN) return OWN
  return HOSTED.test(path) ? '/web-elements/{version}/client/index.js' : undefined
}
