const MOST = 20

/**
 * Returns the names of the arguments that the code of a reactor reads as `args.name` or `const { name } = args`. The names are only
 * a proposal for a form, so code that reads its arguments in another way is not understood.
 */
export function argNames(code: string): string[] {
  const direct = [...code.matchAll(/\bargs\??\.([A-Za-z_]\w{0,99})/g)].map(([, name]) => name!)
  const taken = [...code.matchAll(/\{([^{}]{1,1000})\}\s*=\s*(?:\w+\.)?args\b/g)].flatMap(([, names]) =>
    names!.split(',').flatMap((each) => /^\s*([A-Za-z_]\w{0,99})/.exec(each)?.[1] ?? []),
  )
  return [...new Set([...taken, ...direct])].slice(0, MOST)
}
