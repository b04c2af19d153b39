/** Which Node this is, for starting others like it: facts that stay what they are, from the one global that knows. */
import type { NodeProgram } from './launch.js'

export function findThisNode(): NodeProgram {
  const { execPath, versions, platform } = process
  return { path: execPath, version: versions.node, platform, isRoot: process.getuid?.() === 0 }
}
