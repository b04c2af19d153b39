/** The folders of `src` whose coverage `coverage.ts` checks. Their tests are in folders with the same names. */
export const AREAS = ['domain', 'framework', 'operations', 'crypto', 'storage']
