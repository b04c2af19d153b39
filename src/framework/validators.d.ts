/** Made by `build.ts`: one compiled ajv function for each operation, by its name. */
import type { ErrorObject } from 'ajv'

type Validator = ((input: unknown) => boolean) & { errors?: ErrorObject[] | null }
declare const validators: Record<string, Validator | undefined>
export default validators
