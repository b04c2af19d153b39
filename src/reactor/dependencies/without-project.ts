/** Packages for a server without a project: none, or the bundles in the directory of `--modules`. */
import { isObject, tryJson } from '../../domain/json/json.js'
import {
  ALIASES,
  type DependencyFinding,
  isSameMajor,
  splitRequest,
  VERSIONS_FILE,
  type Versions,
} from '../../domain/reactor/dependencies.js'
import type { Linker, Loaded } from '../../framework/ports/linker.js'
import type { ProjectFiles } from './installed.js'

const MAX_VERSIONS_BYTES = 1024 * 1024

function findNone(wanted: Versions): DependencyFinding[] {
  return Object.entries(wanted).map(([name, version]) => ({
    code: 'dependencies_not_available',
    name,
    version,
    reason:
      'This server has no packages. Start it with --dependencies DIR for a vault in memory, or with --modules DIR: see coffer reactor link --help.',
  }))
}

export const NO_PACKAGES: Linker = {
  link: async () => undefined,
  find: findNone,
  load: async (wanted) => ({ packages: [], findings: findNone(wanted) }),
  close: () => undefined,
}

/**
 * Uses the bundles of a directory as packages. Child processes read the bundles themselves. A bundle that was made by
 * hand has no version, and counts as a bundle of the required version.
 */
export class ModulesLinker implements Linker {
  readonly #directory: string
  readonly #files: ProjectFiles

  constructor(directory: string, files: ProjectFiles) {
    this.#directory = directory
    this.#files = files
  }

  async link(): Promise<void> {
    // Bundles need no linking. `find` reads the directory each time, so a user can add bundles while the server runs.
  }

  find(wanted: Versions): DependencyFinding[] {
    const text = this.#files.read(`${this.#directory}/${VERSIONS_FILE}`, MAX_VERSIONS_BYTES)
    const versions = text === undefined ? undefined : tryJson(text)
    return Object.entries(wanted).flatMap(([name, version]) => {
      const finding = this.#findOne(name, version, isObject(versions) ? versions : {})
      return finding === undefined ? [] : [{ name, version, ...finding }]
    })
  }

  #findOne(name: string, version: string, versions: Record<string, unknown>) {
    const { name: whole = name, subpath = '' } = splitRequest(name) ?? {}
    const isAlias = !this.#has(name) && Object.hasOwn(ALIASES, whole)
    const own = isAlias ? ALIASES[whole]! + subpath : name
    if (!this.#has(own))
      return {
        code: 'dependency_not_found' as const,
        reason: 'It is not in the directory of --modules. Add it there with coffer reactor link.',
      }
    const { name: named = own } = splitRequest(own) ?? {}
    const installed = Object.hasOwn(versions, named) ? versions[named] : undefined
    if (typeof installed !== 'string' || isSameMajor(version, installed)) return undefined
    const reason = `The directory of --modules has version ${installed}.`
    return { code: 'dependency_version_mismatch' as const, installed, reason }
  }

  #has(name: string): boolean {
    const base = `${this.#directory}/${name}`
    return (
      splitRequest(name) !== undefined &&
      [`${base}.js`, `${base}.cjs`].some((path) => this.#files.stamp(path) !== undefined)
    )
  }

  async load(wanted: Versions): Promise<Loaded> {
    return { packages: [], findings: this.find(wanted) }
  }

  close(): void {
    // This linker holds nothing open.
  }
}

/** Takes a package from the projects. If no project has the package, takes its bundle. */
export function linkBoth(project: Linker, modules: Linker): Linker {
  const withoutBundle = (findings: readonly DependencyFinding[]) =>
    findings.filter(({ name, version }) => modules.find({ [name]: version }).length > 0)
  return {
    link: (wanted) => project.link(wanted),
    find: (wanted) => withoutBundle(project.find(wanted)),
    load: async (wanted) => {
      const { packages, findings } = await project.load(wanted)
      return { packages, findings: withoutBundle(findings) }
    },
    close: () => project.close(),
  }
}
