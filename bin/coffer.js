#!/usr/bin/env node
// Hands the process to the command line and its exit code back. CommonJS, because Node starts it sooner.

const { readFileSync, writeSync } = require('node:fs')

const [, , first, ...others] = process.argv
if (!['--version', '-V', 'version'].includes(first) || others.length > 0 || !printVersion()) run()

/** Prints the version without loading the command line; false if the output could not be written. */
function printVersion() {
  try {
    writeSync(1, `${require('../package.json').version}\n`)
    return true
  } catch {
    return false
  }
}

function run() {
  // Otherwise SIGUSR1 opens the inspector, and with it the memory that holds the keys.
  process.on('SIGUSR1', () => {})

  // The exit code if the event loop runs empty before `main` has resolved.
  process.exitCode = 1

  const { createRequire } = require('node:module')
  const { join } = require('node:path')
  const filename = join(__dirname, '../dist/coffer.cjs')
  const near = createRequire(filename)
  const find = (name) => (name.startsWith('./coffer-') ? load(join(__dirname, '../dist', name)) : near(name))
  const { main } = load(filename)(find, filename)

  main(process).then((code) => {
    process.exitCode = code
    // Log lines may wait for a reader that does not read. All other output has been written.
    setTimeout(() => process.exit(code), 1000).unref()
    if (code === 130) process.exit(code)
  })
}

/** Like `require`, but with the code that the build compiled: it spares a third of the start. Another Node ignores it. */
function load(filename) {
  const { Script } = require('node:vm')
  const cachedData = readCompiled(filename)
  return new Script(readFileSync(filename, 'latin1'), { filename, cachedData }).runInThisContext()
}

function readCompiled(filename) {
  try {
    return readFileSync(`${filename}.cache`)
  } catch {
    return undefined
  }
}
