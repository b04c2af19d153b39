#!/usr/bin/env node
// Runs the command line. This file is CommonJS, because Node starts CommonJS sooner.

const { closeSync, openSync, readSync, writeSync } = require('node:fs')

/** All files are read into this buffer, because touching new memory would take longer than reading the files. */
const scratch = Buffer.allocUnsafeSlow(2 ** 21)

const [, , first, ...others] = process.argv
if (!['--version', '-V', 'version'].includes(first) || others.length > 0 || !printVersion()) run()

/** Does not load the command line. Returns false if the output could not be written. */
function printVersion() {
  try {
    writeSync(1, `${require('../package.json').version}\n`)
    return true
  } catch {
    return false
  }
}

function run() {
  // Without a handler, SIGUSR1 opens the inspector, which can read the keys in memory.
  process.on('SIGUSR1', () => {})

  // The exit code if the event loop runs empty before `main` has resolved.
  process.exitCode = 1

  const { join } = require('node:path')
  const filename = join(__dirname, '../dist/coffer.cjs')
  const find = (name) =>
    name.startsWith('./coffer-') ? load(join(__dirname, '../dist', name)) : require(name)
  const { main } = load(filename)(find, filename)

  main(process).then((code) => {
    process.exitCode = code
    // Log lines may still wait for a slow reader. All other output has been written.
    const isWritten = process.stdout.writableLength + process.stderr.writableLength === 0
    if (isWritten || code === 130) process.exit(code)
    setTimeout(() => process.exit(code), 1000).unref()
  })
}

/**
 * Like `require`, but uses the code cache of the build, which saves a third of the start time. Another version of Node
 * ignores the cache.
 */
function load(filename) {
  const { Script } = require('node:vm')
  const source = read(filename).latin1Slice()
  let cachedData
  try {
    cachedData = read(`${filename}.cache`)
  } catch {}
  return new Script(source, { filename, cachedData }).runInThisContext()
}

/** The returned content is valid until the next call. */
function read(filename) {
  const file = openSync(filename)
  const length = readSync(file, scratch)
  closeSync(file)
  return scratch.subarray(0, length)
}
