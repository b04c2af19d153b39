/** `build.ts` generates this module: the text of each file of `facades/` that is a module, as CommonJS. */
declare const texts: Readonly<Record<string, string>>
export default texts
