/**
 * Fixtures for vitest (`coffer/vitest`): one server for all test files, and one fork of the server for each test file.
 * The first run of a reactor can take longer than the 5 s that vitest gives a test. Run the reactor in `beforeAll`, or
 * increase `testTimeout`.
 */
import { relative } from 'node:path'
import { expect, inject, type TestAPI, test as vitestTest } from 'vitest'
import type { TestProject } from 'vitest/node'
import {
  type ClientOptions,
  createControl,
  type KeyNames,
  type RemoteFork,
  type Seed,
  type ServerOptions,
  startServer,
} from './index.js'

declare module 'vitest' {
  interface ProvidedContext {
    /** `key`: the key of the server's control plane. */
    coffer: Pick<ClientOptions, 'url' | 'key' | 'prefix' | 'ca'>
  }
}

/**
 * Returns the function that a file in vitest's `globalSetup` must export as default. The function starts a server
 * before the tests. The server is stopped after the tests. `ca`: the issuer of the certificate in `tls`. Default: the
 * certificate itself.
 */
export function serveCoffer<S extends Seed>({
  ca,
  ...options
}: ServerOptions<S> & { vault?: undefined } & Pick<ClientOptions, 'ca'> = {}) {
  return async ({ provide }: Pick<TestProject, 'provide'>): Promise<() => Promise<void>> => {
    const server = await startServer(options)
    const { url, control } = server
    provide('coffer', { url, key: control.key, prefix: options.prefix ?? 'svc', ca: ca ?? options.tls?.cert })
    return () => server.stop()
  }
}

/**
 * Returns vitest's `test` with the fixture `coffer`: a fork for this test file, named after the file's path. With
 * `createTest<typeof seed>()`, TypeScript checks the names of the seed's keys.
 */
export function createTest<S extends Seed = Record<never, never>>(): TestAPI<{
  coffer: RemoteFork<KeyNames<S>>
}> {
  return vitestTest.extend<{ coffer: RemoteFork<KeyNames<S>> }>({
    coffer: [
      // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of other fixtures from the pattern.
      async ({}, use) => {
        const name = relative('', expect.getState().testPath ?? 'vitest').slice(-100)
        const server = inject('coffer')
        if (server === undefined)
          throw new TypeError(
            'There is no server: test.globalSetup has to name a file that exports serveCoffer().',
          )
        const fork = await createControl<KeyNames<S>>(server).fork({ name })
        try {
          await use(fork)
        } finally {
          await fork.stop()
        }
      },
      { scope: 'file' },
    ],
  })
}
