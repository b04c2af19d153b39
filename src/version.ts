/** The version in `package.json`, written here too so that `--version` reads no file; a test keeps the two equal. */
export const VERSION = '0.1.0'
