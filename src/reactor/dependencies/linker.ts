/**
 * Links packages of a project for reactor code: esbuild bundles each package into one text, in a separate process. The
 * text is cached until a source file of the package changes.
 */
import { createHash } from 'node:crypto'
import { builtinModules } from 'node:module'
import { relative } from 'node:path'
import {
  ALIASES,
  ANY_VERSION,
  type DependencyFinding,
  isSameMajor,
  MAX_LINKED_BYTES,
  majorOf,
  splitRequest,
  type Versions,
} from '../../domain/reactor/dependencies.js'
import type { LinkedPackage, Linker, Loaded } from '../../framework/ports/linker.js'
import { findInstalled, type Installed, isInside, type Problem, type ProjectFiles } from './installed.js'

/** `name`: a package, or a subpath of a package, as code in the project would require it. */
export interface BundleJob {
  project: string
  name: string
}

/** `inputs`: absolute paths of the source files. */
export type Bundled = { text: string; inputs: readonly string[] } | { failure: string }

export interface LinkerEffects {
  files: ProjectFiles
  /** Bundles one package. Never rejects. */
  bundle(job: BundleJob): Promise<Bundled>
  close?(): void
}

interface Verdict {
  installed: string | undefined
  problem?: Problem
  bytes: number
  stamps: ReadonlyMap<string, string | undefined>
}

interface Linked {
  version: string
  digest: string
  text: Uint8Array
}

/** At this limit of texts in memory, the least recently used text is dropped, and linked again when code needs it. */
const KEPT_BYTES = 8 * MAX_LINKED_BYTES
const MAX_REASON_CHARACTERS = 300
/** No file has an empty path, so this stamp never matches. */
const NEVER_CURRENT: Verdict['stamps'] = new Map([['', '']])

export class ProjectLinker implements Linker {
  readonly #projects: readonly string[]
  readonly #effects: LinkerEffects
  readonly #verdicts = new Map<string, Verdict>()
  /**
   * By name and major version, the least recently used first. If a later linking fails, the old text stays, because
   * deployed code uses the old text.
   */
  readonly #linked = new Map<string, Linked>()
  #last: Promise<unknown> = Promise.resolve()

  /** `projects`: absolute paths of directories with `package.json` and `node_modules`. */
  constructor(projects: readonly string[], effects: LinkerEffects) {
    this.#projects = projects
    this.#effects = effects
  }

  async link(wanted: Versions): Promise<void> {
    for (const name of Object.keys(wanted)) await this.#inTurn(() => this.#link(this.#nameOf(name)))
  }

  find(wanted: Versions): DependencyFinding[] {
    const findings: DependencyFinding[] = []
    let bytes = 0
    for (const [name, version] of Object.entries(wanted)) {
      const verdict = this.#verdicts.get(this.#nameOf(name))
      if (verdict === undefined) continue
      bytes += verdict.bytes
      const problem = problemOf(verdict, version, bytes)
      if (problem !== undefined) findings.push({ name, version, ...problem })
    }
    return findings
  }

  async load(wanted: Versions): Promise<Loaded> {
    const packages: LinkedPackage[] = []
    const findings: DependencyFinding[] = []
    let bytes = 0
    for (const [name, version] of Object.entries(wanted)) {
      const own = this.#nameOf(name)
      if (this.#findLinked(own, version) === undefined) await this.#inTurn(() => this.#link(own))
      const [key, linked] = this.#findLinked(own, version) ?? []
      if (key === undefined || linked === undefined) findings.push(...this.find({ [name]: version }))
      else {
        this.#keep(key, linked)
        bytes += linked.text.length
        if (bytes <= MAX_LINKED_BYTES) packages.push({ name, ...linked })
        else findings.push({ name, version, ...tooLargeTogether(bytes) })
      }
    }
    return { packages, findings }
  }

  #findLinked(name: string, version: string): [key: string, linked: Linked] | undefined {
    const installed = version === ANY_VERSION ? this.#verdicts.get(name)?.installed : version
    const key = keyOf(name, installed ?? '')
    const linked = this.#linked.get(key)
    return linked && [key, linked]
  }

  close(): void {
    this.#effects.close?.()
  }

  /** Runs one task at a time, because esbuild uses all processors. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work)
    this.#last = done.catch(() => undefined)
    return done
  }

  /** An alias stands for its package, unless a project has a package with the name of the alias. */
  #nameOf(request: string): string {
    const { name = request, subpath = '' } = splitRequest(request) ?? {}
    const other = Object.hasOwn(ALIASES, name) ? ALIASES[name]! : name
    if (other === name) return request
    return 'version' in findInstalled(this.#effects.files, this.#projects, name) ? request : other + subpath
  }

  async #link(name: string): Promise<void> {
    const found = this.#locate(name)
    const known = this.#verdicts.get(name)
    if (!('version' in found))
      this.#verdicts.set(name, { installed: found.installed, problem: found, bytes: 0, stamps: new Map() })
    else if (known?.installed !== found.version || !this.#isCurrent(name, known))
      this.#verdicts.set(name, await this.#bundle(name, found))
  }

  #locate(request: string): Installed | Problem {
    const { name } = splitRequest(request) ?? {}
    if (name === undefined)
      return { code: 'dependency_not_found', reason: 'It is not the name of a package.' }
    if (builtinModules.includes(name))
      return { code: 'dependency_not_supported', reason: 'A module of Node has the same name.' }
    return findInstalled(this.#effects.files, this.#projects, name)
  }

  #isCurrent(name: string, { installed = '', problem, stamps }: Verdict): boolean {
    if (problem === undefined && !this.#linked.has(keyOf(name, installed))) return false
    return [...stamps].every(([path, stamp]) => this.#effects.files.stamp(path) === stamp)
  }

  async #bundle(name: string, { project, version }: Installed): Promise<Verdict> {
    const { files, bundle } = this.#effects
    const result = await bundle({ project, name })
    const unsupported = (reason: string, inputs: readonly string[] = []): Verdict => ({
      installed: version,
      problem: { code: 'dependency_not_supported', installed: version, reason },
      bytes: 0,
      // Without a list of source files, no stamp can show that another attempt may succeed. Therefore the next `link`
      // bundles the package again.
      stamps: inputs.length === 0 ? NEVER_CURRENT : stampsOf(files, inputs),
    })
    if ('failure' in result) return unsupported(describeFailure(result.failure, project))
    const { text, inputs } = result
    const outside = inputs.find((path) => !isInside(files, project, path))
    if (outside !== undefined) {
      const path = relative(project, outside).slice(0, MAX_REASON_CHARACTERS)
      return unsupported(`It needs the file ${path}, which is outside of node_modules.`, inputs)
    }
    const encoded = Buffer.from(text)
    const bytes = encoded.length
    if (bytes > MAX_LINKED_BYTES) return unsupported(tooLarge(bytes), inputs)
    const digest = createHash('sha256').update(encoded).digest('base64')
    this.#keep(keyOf(name, version), { version, digest, text: encoded })
    return { installed: version, bytes, stamps: stampsOf(files, inputs) }
  }

  #keep(key: string, linked: Linked): void {
    this.#linked.delete(key)
    this.#linked.set(key, linked)
    let bytes = [...this.#linked.values()].reduce((sum, { text }) => sum + text.length, 0)
    for (const [oldest, { text }] of this.#linked) {
      if (bytes <= KEPT_BYTES) return
      this.#linked.delete(oldest)
      bytes -= text.length
    }
  }
}

function keyOf(name: string, version: string): string {
  return `${name}@${majorOf(version)}`
}

function stampsOf(files: ProjectFiles, inputs: readonly string[]): Map<string, string | undefined> {
  return new Map(inputs.map((path) => [path, files.stamp(path)]))
}

function problemOf({ installed, problem }: Verdict, version: string, bytes: number): Problem | undefined {
  if (problem !== undefined) return problem
  if (installed !== undefined && !isSameMajor(version, installed)) {
    const reason = `The project has version ${installed}. Declare version ${installed}, or install the declared version.`
    return { code: 'dependency_version_mismatch', installed, reason }
  }
  return bytes > MAX_LINKED_BYTES ? tooLargeTogether(bytes) : undefined
}

function tooLargeTogether(bytes: number): Problem {
  return {
    code: 'dependency_not_supported',
    reason: `The packages together have ${bytes} bytes when they are linked; at most ${MAX_LINKED_BYTES} are allowed.`,
  }
}

function tooLarge(bytes: number): string {
  return `The linked package has ${bytes} bytes; at most ${MAX_LINKED_BYTES} are allowed.`
}

function describeFailure(failure: string, project: string): string {
  const line = failure.replaceAll(project, '.').replaceAll(/\s+/g, ' ')
  return `It cannot be linked: ${line.slice(0, MAX_REASON_CHARACTERS)}`
}
