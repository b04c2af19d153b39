import type { DependencyFinding, Versions } from '../../domain/reactor/dependencies.js'

/** The text of a package as one CommonJS module. Equal digests mean equal texts. */
export interface LinkedPackage {
  /** The name with which code requires the package. */
  name: string
  /** The version that is installed in the project. */
  version: string
  digest: string
  text: Uint8Array
}

/**
 * The packages that a run can use, and the reasons why other declared packages cannot be used. Packages that
 * are built into every child process are in neither list.
 */
export interface Loaded {
  packages: readonly LinkedPackage[]
  findings: readonly DependencyFinding[]
}

/** Makes the npm packages that reactor code declares available to the runs of this code. A linker downloads nothing. */
export interface Linker {
  /**
   * Links the packages `wanted` as they are installed now. Linking a large package takes seconds. A package that cannot
   * be linked becomes a finding.
   */
  link(wanted: Versions): Promise<void>
  /** Returns the faults that the last linking of each package found. A package that was never linked has no finding. */
  find(wanted: Versions): DependencyFinding[]
  /**
   * Returns for each package the text from the last linking that found no fault. A package that was not linked yet is
   * linked first.
   */
  load(wanted: Versions): Promise<Loaded>
  close(): void
}
