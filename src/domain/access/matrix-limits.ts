/**
 * The maximum number of applications in one answer of `access matrix`. The command line imports this module
 * instead of the whole operation.
 */
export const MAX_APPLICATIONS = 100
