import type { DependencyFinding, Versions } from '../../domain/reactor/dependencies.js'

/** The text of a package as one CommonJS module. Equal digests mean equal texts. */
export interface LinkedPackage {
  /** The name with which code requires the package. */
  name: string
  /** The version in the project. */
  version: string
  digest: string
  text: Uint8Array
}

/**
 * The packages that a run can use, and why other packages cannot be used. Packages that are built into every child
 * process are in neither list.
 */
export interface Loaded {
  packages: readonly LinkedPackage[]
  findings: readonly DependencyFinding[]
}

/** Makes npm packages available to the runs of reactor code. A linker downloads nothing. */
export interface Linker {
  /**
   * Links the packages as they are installed now. A large package takes seconds. A package that cannot be linked
   * becomes a finding.
   */
  link(wanted: Versions): Promise<void>
  /** Returns the findings of the last linking. A package that was never linked has no finding. */
  find(wanted: Versions): DependencyFinding[]
  /**
   * Returns the text of each package from its last linking without a fault. Links each package that was not linked yet.
   */
  load(wanted: Versions): Promise<Loaded>
  close(): void
}
