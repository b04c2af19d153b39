/** The maximum number of applications in one answer of `access matrix`. The command line also reads this limit, without loading the operation. */
export const MAX_APPLICATIONS = 100
