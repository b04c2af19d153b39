/**
 * The version in `package.json`, repeated here so that the program reads no file. A test checks that both versions
 * are equal.
 */
export const VERSION = '0.1.0'
