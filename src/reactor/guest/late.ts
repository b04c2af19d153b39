/** Modules of Node that few runs need, and that take some ms to load. */

/** Read here, before `stripProcess` removes `getBuiltinModule`. */
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
