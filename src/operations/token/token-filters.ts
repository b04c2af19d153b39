import type { Lenient } from '../../domain/omit-undefined.js'
import { TOKEN_TYPE_NAMES } from '../../domain/token/token-types.js'
import { invalid } from '../../errors.js'
import { filterBy, type Infer, onlyOf } from '../../framework/schema.js'
import { metadata } from './token-attributes.js'

export const tokenFilters = {
  id: { ...filterBy('Only the token with this id.'), refersTo: 'token' },
  type: filterBy('Only tokens of this type.', onlyOf(TOKEN_TYPE_NAMES)),
  types: filterBy('Only tokens of these types, separated by commas.', {
    suggestions: TOKEN_TYPE_NAMES,
    closed: 'list',
  }),
  container: filterBy('Only tokens in this container; a trailing * matches what follows: /pci/*.'),
  metadata: {
    ...metadata,
    minProperties: 1,
    description: 'Only tokens with this metadata, also as JSON; values are compared case-insensitively.',
  },
} as const

export function checkFilters({ types = [] }: Lenient<Pick<TokenFilters, 'types'>>): void {
  if (types.some((text) => text !== undefined && splitTypes(text).includes('')))
    throw invalid('types', 'must be types separated by commas')
}

export type TokenFilters = Infer<{ type: 'object'; properties: typeof tokenFilters }>

export function wantedTypes({ type, types }: TokenFilters): string[] | undefined {
  if (type === undefined && types === undefined) return undefined
  return [...(type ?? []), ...(types ?? []).flatMap(splitTypes)]
}

function splitTypes(text: string): string[] {
  return text.split(',').map((type) => type.trim())
}
