import type { DependencyFinding, Versions } from '../../domain/reactor/dependencies.js'

/** The text of a package as one CommonJS module. Equal digests mean equal texts. */
export interface LinkedPackage {
  /** The name that code requires. */
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

/** Makes the npm packages of code available to its runs. It downloads nothing. */
export interface Linker {
  /**
   * Links these packages as they are installed now. Takes seconds for a large package. A package that cannot
   * be linked becomes a finding.
   */
  link(wanted: Versions): Promise<void>
  /** The faults of these packages when they were last linked. A package that was never linked has no finding. */
  find(wanted: Versions): DependencyFinding[]
  /**
   * Returns the packages as they were linked last without a fault. Links a package that was not linked yet.
   */
  load(wanted: Versions): Promise<Loaded>
  close(): void
}
