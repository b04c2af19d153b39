/** Every recorded case through the typed client, and through commands that a server answers. */
process.env.COFFER_TEST_LONG = '1'
await import('../parity/served.test.js')

export {}
