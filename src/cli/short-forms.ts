/** Values that have a short form for people, in addition to JSON. */
import type { Rule } from '../domain/access/access.js'
import { completeRule } from '../domain/access/complete-rule.js'
import { formatRule, parseRules } from '../domain/access/rule-text.js'
import { itemOutput } from '../framework/page.js'
import { memberOf, type Schema } from '../framework/schema.js'
import type { FormatItem } from './output/table.js'

interface ShortForm {
  readonly placeholder: string
  readonly example: string
  readonly topic: string
  /** `before`: the values from earlier texts of the same flag. @throws CofferError `usage` */
  parse(text: string, before: readonly unknown[]): unknown[]
  /** Returns one line. Requires: the value fits its schema. */
  format(value: unknown): string
  /** A completion begins with `begun`, and may end with a tab and a description. */
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
