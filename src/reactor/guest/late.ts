/**
 * Modules of Node that few runs need, and that take some ms to load. All other modules are imported, so they are
 * loaded before reactor code runs.
 */

/** `getBuiltinModule` is read here, before `stripProcess` removes it. */
const { getBuiltinModule } = process

function once<T>(load: () => T): () => T {
  let loaded: { module: T } | undefined
  return () => {
    loaded ??= { module: load() }
    return loaded.module
  }
}

export const loadZlib = once(() => getBuiltinModule('node:zlib'))
export const loadV8 = once(() => getBuiltinModule('node:v8'))
