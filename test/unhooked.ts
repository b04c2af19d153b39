/**
 * Turns off the async hooks of tap, which see every promise of a test and take a tenth to a quarter of its CPU time.
 * `npm test` loads this module first in each test process.
 *
 * tap needs the hooks only to name the test in which a timer or callback has thrown. Without the hooks, an error in a
 * timer or callback ends the process of its test file. The file then fails, and the report shows the stack of the
 * error.
 */
import asyncHooks from 'node:async_hooks'
import { syncBuiltinESMExports } from 'node:module'

const unused: asyncHooks.AsyncHook = { enable: () => unused, disable: () => unused }
asyncHooks.createHook = () => unused
syncBuiltinESMExports()
