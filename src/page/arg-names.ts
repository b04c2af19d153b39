const MOST = 20

/**
 * Finds arguments that reactor code reads as `args.name` or `const { name } = args`. The form only proposes these
 * names, so other ways of reading are ignored.
 */
export function argNames(code: string): string[] {
  const direct = [...code.matchAll(/\bargs\??\.([A-Za-z_]\w{0,99})/g)].map(([, name]) => name!)
  const taken = [...code.matchAll(/\{([^{}]{1,1000})\}\s*=\s*(?:\w+\.)?args\b/g)].flatMap(([, names]) =>
    names!.split(',').flatMap((each) => /^\s*([A-Za-z_]\w{0,99})/.exec(each)?.[1] ?? []),
  )
  return [...new Set([...taken, ...direct])].slice(0, MOST)
}
