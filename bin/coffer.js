#!/usr/bin/env node
// Hands the process to the command line and its exit code back. CommonJS, because Node starts it sooner.

const { closeSync, openSync, readSync, writeSync } = require('node:fs')

/** All files are read into the same memory, because the first touch of each page of it costs more than to read it. */
const scratch = Buffer.allocUnsafeSlow(2 ** 21)

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

  const { join } = require('node:path')
  const filename = join(__dirname, '../dist/coffer.cjs')
  const find = (name) =>
    name.startsWith('./coffer-') ? load(join(__dirname, '../dist', name)) : require(name)
  const { main } = load(filename)(find, filename)

  main(process).then((code) => {
    process.exitCode = code
    // Log lines may wait for a reader that does not read. All other output has been written.
    const isWritten = process.stdout.writableLength + process.stderr.writableLength === 0
    if (isWritten || code === 130) process.exit(code)
    setTimeout(() => process.exit(code), 1000).unref()
  })
}

/** Like `require`, but with the code that the build compiled: it spares a third of the start. Another Node ignores it. */
function load(filename) {
  const { Script } = require('node:vm')
  const source = read(filename).latin1Slice()
  let cachedData
  try {
    cachedData = read(`${filename}.cache`)
  } catch {}
  return new Script(source, { filename, cachedData }).runInThisContext()
}

/** The content of a file, until the next one is read. */
function read(filename) {
  const file = openSync(filename)
  const length = readSync(file, scratch)
  closeSync(file)
  return scratch.subarray(0, length)
}
