/** The version in `package.json`, written here too so that the program reads no file for it; a test keeps the two equal. */
export const VERSION = '0.1.0'
