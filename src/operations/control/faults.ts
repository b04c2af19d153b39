/** The faults of the control plane as operations: rules by which requests fail on purpose. */
import { DESTINATION_FAULT_RULE, readDestinationFault } from '../../domain/proxy/destination-fault.js'
import { invalid } from '../../errors.js'
import { anyJson, arrayOf } from '../../framework/output.js'
import { type FaultRule, faultRule } from '../../framework/ports/control.js'
import { closedInput } from '../../framework/schema.js'
import { controlled } from './controlled.js'

const faultsOutput = arrayOf(
  anyJson('A rule, with matched and applied: how many requests it fits and applied to.'),
)

export const listFaults = controlled({
  name: 'control fault list',
  control: 'GET /faults',
  summary: 'List the rules by which requests fail, with counts.',
  output: faultsOutput,
  ask: (control) => control.listFaults(),
})

export const setFaults = controlled({
  name: 'control fault set',
  control: 'PUT /faults',
  summary: 'Replace the rules by which requests fail.',
  details:
    'A rule applies to an operation, method or path (* matches any text), headers and properties of the body, to the\n' +
    'first `times` requests or to `every` so many, and has a kind: status (with status, detail, retry_after), delay\n' +
    '(delay_ms), drop (the connection, before the work), cut (the answer, after so many bytes), lose (the connection,\n' +
    'after the work). Instead of a kind, `destination` says what the destination of a call through a proxy does: timeout\n' +
    '(408, at once), a status such as 502, or a time that it takes, such as "30 s".',
  input: closedInput(['rules'], {
    rules: { type: 'array', items: faultRule, maxItems: 100, flag: 'rule', description: 'A rule as JSON.' },
  }),
  output: faultsOutput,
  example: `--rule '{"operation":"token create","kind":"status","status":503,"times":2}'`,
  check: ({ rules = [] }) => {
    for (const [index, each] of rules.entries()) {
      const { kind, destination } = each ?? {}
      const needed = kind === 'status' ? 'status' : kind === 'delay' ? 'delay_ms' : undefined
      if (needed !== undefined && each?.[needed] === undefined)
        throw invalid(`rules[${index}].${needed}`, `is required for ${kind}`)
      const isDestined = destination !== undefined
      if (kind === undefined && !isDestined) throw invalid(`rules[${index}].kind`, 'is required')
      if (kind !== undefined && (kind === 'destination') !== isDestined)
        throw invalid(`rules[${index}].destination`, 'is required for the kind destination, and for no other')
      if (isDestined && readDestinationFault(destination) === undefined)
        throw invalid(`rules[${index}].destination`, DESTINATION_FAULT_RULE)
    }
  },
  ask: async (control, { rules }) => {
    await control.setFaults(rules.map((rule) => ({ kind: 'destination', ...rule }) as FaultRule))
    return control.listFaults()
  },
})

export const clearFaults = controlled({
  name: 'control fault clear',
  control: 'DELETE /faults',
  summary: 'Remove the rules by which requests fail.',
  ask: (control) => control.setFaults([]),
})
