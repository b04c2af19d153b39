/** The templates of applications are part of the program, so nobody can change a template. */
import { APPLICATION_TYPES } from '../../domain/access/application.js'
import { listTemplates } from '../../domain/access/templates.js'
import { CofferError } from '../../errors.js'
import { anyKey } from '../../framework/declaration.js'
import { query } from '../../framework/operation.js'
import { arrayOf, boolean, component, enumOf, text, texts, uuid } from '../../framework/output.js'
import { idOf, inputSchema } from '../../framework/schema.js'
import { ruleOutput } from './application-record.js'

const columns = ['id', 'name', 'application_type', 'description']
const templateOutput = component('ApplicationTemplate', columns, {
  id: uuid,
  name: text,
  description: text,
  application_type: enumOf(...APPLICATION_TYPES),
  template_type: text,
  is_starter: boolean,
  rules: arrayOf(ruleOutput),
  permissions: texts,
})

const list = query({
  name: 'app template list',
  summary: 'List the templates of applications.',
  details: 'A template is a set of permissions and access rules. Copy them into a new application.',
  access: anyKey,
  route: 'GET /application-templates',
  output: arrayOf(templateOutput),
  examples: ['coffer app template list'],
  run: async () => listTemplates(),
})

const get = query({
  name: 'app template get',
  summary: 'Get a template of applications.',
  access: anyKey,
  route: 'GET /application-templates/{id}',
  input: inputSchema(['id'], { id: idOf('app template', 'The id of the template, or its name.') }),
  output: templateOutput,
  examples: ['coffer app template get "Read only"'],
  async run(_, { id }) {
    const template = listTemplates().find((each) => each.id === id)
    if (template === undefined) throw new CofferError('not_found', 'There is no template with this id.')
    return template
  },
})

export const templateOperations = [list, get] as const
