/** A project for tests of linking. The tests write the packages of the project. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'

const OWN_MODULES = fileURLToPath(new URL('../../../../node_modules', import.meta.url))

export interface PackageFiles {
  /** The text of `package.json`, or an object. `addPackage` adds the name and the version to an object. */
  manifest?: object | string
  files?: Readonly<Record<string, string>>
}

/** Returns a path below a new directory. The directory is removed after the test. */
export function createDirectory(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'coffer-project-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/**
 * Creates a project whose `package.json` declares all `packages` and has the properties of `more`. The project has the
 * esbuild of this repository, unless `esbuild` is false.
 */
export function createProject(
  t: Test,
  packages: Readonly<Record<string, PackageFiles | string>>,
  { more = {}, esbuild = true }: { more?: object; esbuild?: boolean } = {},
): string {
  const directory = join(createDirectory(t), 'project')
  const names = Object.keys(packages)
  const dependencies = Object.fromEntries(names.map((name) => [name, '^1.0.0']))
  write(join(directory, 'package.json'), JSON.stringify({ dependencies, ...more }))
  mkdirSync(join(directory, 'node_modules'), { recursive: true })
  if (esbuild)
    for (const name of ['esbuild', '@esbuild'])
      symlinkSync(join(OWN_MODULES, name), join(directory, 'node_modules', name))
  for (const [name, given] of Object.entries(packages)) addPackage(directory, name, given)
  return directory
}

/** Adds a package to `node_modules`. If `given` is a text, the text becomes the `index.js` of the package. */
export function addPackage(directory: string, name: string, given: PackageFiles | string): void {
  const { manifest = {}, files = {} } = typeof given === 'string' ? { files: { 'index.js': given } } : given
  const place = join(directory, 'node_modules', name)
  const text =
    typeof manifest === 'string' ? manifest : JSON.stringify({ name, version: '1.2.3', ...manifest })
  write(join(place, 'package.json'), text)
  for (const [path, content] of Object.entries(files)) write(join(place, path), content)
}

export function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}
