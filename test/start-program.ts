/**
 * Starts a program as people start it: without the options for Node that tap puts into the environment of every child,
 * with which a Node process takes twice as long to start. Such a child counts for no coverage.
 */
import { spawn } from 'node:child_process'

type Spawn = typeof spawn

export const startProgram = ((file: string, words: readonly string[], options: object) =>
  spawn('/usr/bin/env', ['-u', 'NODE_OPTIONS', file, ...words], options)) as Spawn
