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
 * The packages of a run, and why others cannot be used. Neither list has the packages that every child
 * process already has.
 */
export interface Loaded {
  packages: readonly LinkedPackage[]
  findings: readonly DependencyFinding[]
}

/** Makes the npm packages of code available to its runs. Downloads nothing. */
export interface Linker {
  /** Links these packages as they are installed now. Takes seconds for a large package. Failures become findings. */
  link(wanted: Versions): Promise<void>
  /** The faults of these packages when they were last linked. A package that was never linked has no finding. */
  find(wanted: Versions): DependencyFinding[]
  /** The packages as they were last linked with success. Links a package that was not linked yet. */
  load(wanted: Versions): Promise<Loaded>
  close(): void
}
