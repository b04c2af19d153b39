/** The version in `package.json`, repeated here so that the program reads no file. A test compares the two versions. */
export const VERSION = '0.1.0'
