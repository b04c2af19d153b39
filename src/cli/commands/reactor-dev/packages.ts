/** Links the packages that a file requires, from the project that the file is in. */
import { ANY_VERSION } from '../../../domain/reactor/dependencies.js'
import type { LinkedPackage, Linker } from '../../../framework/ports/linker.js'
import { projectTools } from '../../../vault/app.js'
import { findRequired } from '../reactor-packages.js'

export interface Packages {
  /** Links again what has changed. `advice`: what to know about the packages. Each text is given once. */
  link(code: string): Promise<{ packages: readonly LinkedPackage[]; advice: readonly string[] }>
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
  const given = new Set<string>()
  return {
    link: async (code) => {
      const { packages, texts } = await linkRequired(linker, findRequired(code))
      const advice = texts.filter((text) => !given.has(text))
      for (const text of advice) given.add(text)
      return { packages, advice }
    },
    close: () => linker?.close(),
  }
}

async function linkRequired(linker: Linker | undefined, names: readonly string[]) {
  if (linker === undefined) {
    const why = 'no package.json is in the directory of the file, or above it. Run npm init -y && npm install'
    return { packages: [], texts: names.map((name) => `The package ${name} cannot be used: ${why} ${name}`) }
  }
  const wanted = Object.fromEntries(names.map((name) => [name, ANY_VERSION]))
  await linker.link(wanted)
  const { packages, findings } = await linker.load(wanted)
  const texts = findings.map(({ name, reason }) => `The package ${name} cannot be used: ${reason}`)
  if (packages.length > 0) {
    const dependencies = Object.fromEntries(packages.map(({ name, version }) => [name, version]))
    texts.push(`Deploy it with --runtime '${JSON.stringify({ image: 'node22', dependencies })}'`)
  }
  return { packages, texts }
}
