/**
 * The maximum number of applications in one answer of `access matrix`. The command line reads this file without loading
 * the operation.
 */
export const MAX_APPLICATIONS = 100
