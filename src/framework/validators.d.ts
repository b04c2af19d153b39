/** `build.ts` generates this module: the function that ajv compiled for each operation. */
import type { ErrorObject } from 'ajv'

type Validator = ((input: unknown) => boolean) & { errors?: ErrorObject[] | null }
export default function findValidator(name: string): Validator | undefined
