/** The version in `package.json`, repeated here so that the program reads no file. A test compares both. */
export const VERSION = '0.1.0'
