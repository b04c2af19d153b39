/**
 * Links the packages that a file requires. The packages come from the project that contains the file, or from
 * `--modules`.
 */
import { ANY_VERSION, splitRequest, withSubpaths } from '../../../domain/reactor/dependencies.js'
import type { LinkedPackage, Linker } from '../../../framework/ports/linker.js'
import { projectTools } from '../../../vault/app.js'
import { findRequired } from '../reactor-packages.js'

export interface Packages {
  /**
   * `missing`: a sentence for each package that cannot be used. `advice`: how to deploy the packages. Undefined if
   * there are no packages, or if the packages are the same as in the last call.
   */
  link(code: string): Promise<{
    packages: readonly LinkedPackage[]
    missing: readonly string[]
    advice: string | undefined
  }>
  close(): void
}

/** `file`, `modulesDirectory`: absolute paths. */
export async function openPackages(file: string, modulesDirectory: string | undefined): Promise<Packages> {
  const { findProjectOf, createLinker } = await projectTools()
  const project = findProjectOf(file)
  const linker =
    project === undefined && modulesDirectory === undefined
      ? undefined
      : createLinker({
          ...(project !== undefined && { dependencies: [project] }),
          ...(modulesDirectory !== undefined && { modulesDirectory }),
        })
  let given: string | undefined
  return {
    link: async (code) => {
      const { packages, missing } = await linkRequired(linker, code)
      const text = describeRuntime(packages)
      const advice = text === given ? undefined : text
      given = text
      return { packages, missing, advice }
    },
    close: () => linker?.close(),
  }
}

async function linkRequired(linker: Linker | undefined, code: string) {
  const names = findRequired(code)
  if (linker === undefined) {
    const why = 'no package.json is in the directory of the file, or above it. Run npm init -y && npm install'
    return {
      packages: [],
      missing: names.map((name) => `The package ${name} cannot be used: ${why} ${name}`),
    }
  }
  const wanted = withSubpaths(Object.fromEntries(names.map((name) => [name, ANY_VERSION])), code)
  await linker.link(wanted)
  const { packages, findings } = await linker.load(wanted)
  const missing = findings.map(({ name, reason }) => `The package ${name} cannot be used: ${reason}`)
  return { packages, missing }
}

function describeRuntime(packages: readonly LinkedPackage[]): string | undefined {
  // A subpath needs no declaration of its own, because the declaration of its package covers it.
  const whole = packages.filter(({ name }) => splitRequest(name)?.subpath === '')
  if (whole.length === 0) return undefined
  const dependencies = Object.fromEntries(whole.map(({ name, version }) => [name, version]))
  return `Deploy the code with --runtime '${JSON.stringify({ image: 'node22', dependencies })}'`
}
