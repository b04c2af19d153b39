/** Values that people write and read in a form of their own, besides JSON. */
import type { Rule } from '../domain/access/access.js'
import { completeRule } from '../domain/access/complete-rule.js'
import { formatRule, parseRules } from '../domain/access/rule-text.js'
import { itemOutput } from '../framework/page.js'
import { memberOf, type Schema } from '../framework/schema.js'
import type { FormatItem } from './output/table.js'

interface ShortForm {
  /** For the help of a flag. */
  readonly placeholder: string
  readonly example: string
  /** The help topic that describes it. */
  readonly topic: string
  /** The values of a text. `before`: those of the flags before it. @throws CofferError `usage` */
  parse(text: string, before: readonly unknown[]): unknown[]
  /** One line. Contract: the value fits its schema. */
  format(value: unknown): string
  /** The texts that may follow a begun one, with it; the meaning of what is added follows after a tab. */
  complete(begun: string): string[]
}

const SHORT_FORMS: Readonly<Record<NonNullable<Schema['shortForm']>, ShortForm>> = {
  rule: {
    placeholder: '<rule>',
    example: '/pci/ mask token:read',
    topic: 'access-rules',
    parse: parseRules,
    format: (value) => formatRule(value as Rule),
    complete: completeRule,
  },
}

export function shortFormOf({ shortForm }: Schema): ShortForm | undefined {
  return shortForm && SHORT_FORMS[shortForm]
}

/** How to write the members of the lists that an answer, or each item of it, has. */
export function listFormats(output: Schema): Record<string, FormatItem> {
  const item = itemOutput(output)
  const properties = (item.type === 'object' && item.properties) || {}
  const formats: Record<string, FormatItem> = {}
  for (const [name, schema] of Object.entries(properties)) {
    const form = shortFormOf(memberOf(schema))
    if (form !== undefined) formats[name] = form.format
  }
  return formats
}
