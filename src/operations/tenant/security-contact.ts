/** The address of the person who gets mail about vulnerabilities. Coffer stores the address and sends no mail to it. */
import { checkEmail } from '../../domain/invitation/mail-server.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { about } from '../../domain/property-errors.js'
import { requires } from '../../framework/declaration.js'
import { change, query } from '../../framework/operation.js'
import { component, text } from '../../framework/output.js'
import { inputSchema } from '../../framework/schema.js'
import { modified } from '../manage.js'

const contactOutput = component('SecurityContact', ['email'], {
  'email?': { ...text, description: 'Absent if no address was set.' },
})

const getContact = query({
  name: 'tenant security-contact',
  summary: 'Show the e-mail address of the security contact.',
  access: requires('tenant:read'),
  route: 'GET /tenants/self/security-contact',
  output: contactOutput,
  examples: ['coffer tenant security-contact'],
  log: { operation: 'read', message: 'Security contact retrieved' },
  async run(context) {
    const { id, security_contact: email } = await context.tenant()
    context.audit.record('tenant', id)
    return omitUndefined({ email })
  },
})

const setContact = change({
  name: 'tenant set-security-contact',
  summary: 'Set the e-mail address of the security contact.',
  details: 'Coffer stores the address and sends no mail to it.',
  access: requires('tenant:update'),
  route: 'PUT /tenants/self/security-contact',
  input: inputSchema(['email'], {
    email: { type: 'string', description: 'The e-mail address.' },
  }),
  output: contactOutput,
  cli: { positionals: ['email'] },
  examples: ['coffer tenant set-security-contact security@example.com'],
  log: { operation: 'update', message: 'Security contact changed', derivesNoEvent: true },
  check: ({ email }) => {
    if (email !== undefined) about('email', () => checkEmail(email))
  },
  async run(context, { email }) {
    const before = await context.tenant()
    const record = { ...before, security_contact: email, ...modified(context) }
    await context.store.replace('tenant', 0, record)
    context.audit.record('tenant', record.id)
    return { email }
  },
})

export const contactOperations = [getContact, setContact] as const
