/** `build.ts` generates this module from the functions that ajv compiled. */
import type { ErrorObject } from 'ajv'

type Validator = ((input: unknown) => boolean) & { errors?: ErrorObject[] | null }
export default function findValidator(name: string): Validator | undefined
