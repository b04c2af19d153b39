/** The paths of the script of the card fields. Every server loads this small module. */

const OWN = '/elements/client/index.js'

/** The npm packages of the emulated service request the script at this path, which contains a version. */
const HOSTED = /^\/web-elements\/[\w.-]{1,40}\/(?:client\/|bundle\/)?index\.js$/

/** Returns the pattern of the path for the access log, or undefined if the path belongs to something else. */
export function findElements(path: string): string | undefined {
  if (path === OWN) return OWN
  return HOSTED.test(path) ? '/web-elements/{version}/client/index.js' : undefined
}
