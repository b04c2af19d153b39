/** The folders of `src` that keep secrets. The tests in the folders of the same names must cover them. */
export const AREAS = ['domain', 'framework', 'operations', 'crypto', 'storage']
