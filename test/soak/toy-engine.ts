/** The product over the engine that takes its time. */
import { runProductSuites } from '../product-suites.js'

process.exitCode = runProductSuites('toy').length === 0 ? 0 : 1
