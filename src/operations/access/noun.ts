/** Only the owner of the vault is allowed to use these operations, because the answers contain access rules. */
import type { Grants } from '../../domain/access/access.js'
import { APPLICATION_TYPES, isExpired } from '../../domain/access/application.js'
import { isContainerPath } from '../../domain/access/container.js'
import { MAX_APPLICATIONS } from '../../domain/access/matrix-limits.js'
import type { Lenient } from '../../domain/omit-undefined.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import type { ApplicationRecord } from '../../domain/records/records.js'
import { TOKEN_TYPES } from '../../domain/token/token-types.js'
import { invalid } from '../../errors.js'
import type { Context, Session } from '../../framework/context.js'
import { owner } from '../../framework/declaration.js'
import { list } from '../../framework/operation.js'
import { anyJson, arrayOf, boolean, count, date, enumOf, object, text, uuid } from '../../framework/output.js'
import { closedInput, filterBy } from '../../framework/schema.js'
import {
  checkRights,
  liveKeys,
  permissionList,
  readRights,
  ruleList,
} from '../application/application-record.js'
import { createExamples, type ExampleContainer, MASKS, readSamples, type Sample } from './example.js'
import { chooseContainers, DECIDERS, decideRow, expiredRow, SEES } from './matrix.js'

/** The permissions that decide who gets data of a token. */
const PERMISSIONS_TO_SEE = ['token:read', 'token:use', 'reactor:invoke', 'proxy:invoke'] as const
const MAX_CONTAINERS = 100
const MAX_PREVIEWED = 30
/** The id of an application that is not stored. */
const CANDIDATE = 'candidate'
/** The costs of a decision by one rule, in steps of the budget. */
const RULE_STEPS = 100
const CELL_STEPS = 1000

const permission = {
  type: 'string',
  enum: PERMISSIONS_TO_SEE,
  default: 'token:read',
  description: `The permission to decide about: one of ${PERMISSIONS_TO_SEE.join(', ')}.`,
} as const

const cellOutput = object({
  container: text,
  sees: enumOf(...SEES),
  'example?': anyJson(
    'The made-up data of an example token, as the caller sees it. Absent if the caller sees no data.',
  ),
  by: {
    ...enumOf(...DECIDERS),
    description: 'The source of the decision: a rule, the permissions, nothing, or the expiry.',
  },
  'rule?': { ...count, description: 'The priority of the rule that decides.' },
  'description?': text,
})

const containersOutput = arrayOf(
  object({
    container: text,
    type: { ...text, description: 'The type of the example token.' },
    is_used: { ...boolean, description: 'Whether a token is in the container.' },
    mask: {
      ...enumOf(...MASKS),
      description:
        'shown: masked cells show the mask. none: the token has no mask. ' +
        'other: the mask needs other data, or its result is too long.',
    },
    'example?': anyJson('The made-up data of the example token.'),
  }),
)

const matrixOutput = object({
  tenant: object({ id: uuid, name: text }),
  at: date,
  permission: text,
  containers: containersOutput,
  applications: arrayOf(
    object({
      id: uuid,
      name: text,
      type: enumOf(...APPLICATION_TYPES),
      keys: { ...count, description: 'The number of keys that work.' },
      'expires_at?': date,
      is_expired: boolean,
      cells: arrayOf(cellOutput),
    }),
  ),
  total_applications: count,
  total_containers: count,
})

const EXAMPLES =
  'Each value is the made-up data of an example token, such as the test card 4242424242424242. The example has the type and\n' +
  'the mask of the newest token in the container. The access rules treat the example like a token that is only in this\n' +
  'container. Values of stored tokens are never shown.'

const ORDER = 'The containers of rules come first, then the containers of tokens.'

const matrix = list({
  name: 'access matrix',
  access: owner,
  summary: 'Show what each application sees in each container, with an example value.',
  details:
    `${EXAMPLES}\n` +
    `An answer has at most ${MAX_APPLICATIONS} applications and ${MAX_CONTAINERS} containers. ${ORDER}`,
  input: closedInput([], {
    application: { ...filterBy('Only this application.'), refersTo: 'app' },
    container: filterBy('Only this container and the containers below it, such as /pci/.'),
    permission,
    page: {
      type: 'integer',
      minimum: 1,
      default: 1,
      description: `The number of the page, from 1. A page has at most ${MAX_APPLICATIONS} applications.`,
    },
  }),
  output: matrixOutput,
  examples: [
    'coffer access matrix',
    'coffer access matrix --container /pci/ --permission token:use',
    'coffer access matrix -o csv > access.csv',
  ],
  check: ({ container }) => requireContainers(container),
  async run(session, { application, container, permission = 'token:read', page = 1 }) {
    const read = await session.inUnit(async (context) => {
      const { store, caller, now, date } = context
      const search = { page, size: MAX_APPLICATIONS, ...(application && { where: { ids: application } }) }
      const { records, total } = await store.find('application', caller.tenant, search)
      const chosen = await chooseFor(context, records, container, MAX_CONTAINERS)
      const { id, name } = await context.tenant()
      return { records, total, ...chosen, now, at: date, tenant: { id, name } }
    })
    const { records, total, samples, now, at, tenant } = read
    const containers = await makeExamples(session, samples)
    const applications = []
    for (const record of records) {
      const is_expired = isExpired(record, now)
      const { id, name, type, expires_at } = record
      const cells = is_expired
        ? expiredRow(containers)
        : decideRow(session.caller.tenant, record, permission, containers)
      const keys = liveKeys(record, now).length
      applications.push({ id, name, type, keys, ...omitUndefined({ expires_at }), is_expired, cells })
      await takeTurn(session, record, containers)
    }
    return {
      ...{ tenant, at, permission, containers: containers.map(describeContainer), applications },
      ...{ total_applications: total, total_containers: read.containers },
    }
  },
})

const preview = list({
  name: 'access preview',
  access: owner,
  summary: 'Show what an application with these permissions and rules would see. Nothing is stored.',
  details: `${EXAMPLES}\nAn answer has at most ${MAX_PREVIEWED} containers. ${ORDER}`,
  input: {
    ...closedInput(['type'], {
      type: {
        type: 'string',
        enum: APPLICATION_TYPES,
        description: `One of ${APPLICATION_TYPES.join(', ')}.`,
      },
      permissions: {
        ...permissionList,
        description: 'A permission of the application; see coffer app permissions.',
      },
      rules: ruleList('An access rule.', { required: ['priority', 'container', 'transform', 'permissions'] }),
      container: filterBy('Only this container and the containers below it, such as /pci/.'),
      to: permission,
    }),
    needsOneOf: ['permissions', 'rules'],
  } as const,
  output: object({
    permission: text,
    containers: containersOutput,
    cells: arrayOf(cellOutput),
    total_containers: count,
  }),
  examples: [`coffer access preview --type private --rule '/pci/ mask token:read'`],
  async check({ container, ...input }, tools) {
    requireContainers(container)
    await checkRights(input.type, input, tools)
  },
  async run(session, { container, to = 'token:read', ...input }) {
    const grants = readRights(input)
    const read = await session.inUnit((context) => chooseFor(context, [grants], container, MAX_PREVIEWED))
    const containers = await makeExamples(session, read.samples)
    const candidate = { id: CANDIDATE, type: input.type, ...grants }
    const cells = decideRow(session.caller.tenant, candidate, to, containers)
    return {
      ...{ permission: to, containers: containers.map(describeContainer), cells },
      total_containers: read.containers,
    }
  },
})

function requireContainers(container: Lenient<string[]> | undefined): void {
  for (const [at, each] of (container ?? []).entries())
    if (each !== undefined && !isContainerPath(each))
      throw invalid(`container[${at}]`, 'must be a path such as /pci/high/')
}

async function chooseFor(
  context: Context,
  grants: readonly Pick<Grants, 'rules'>[],
  wanted: readonly string[] | undefined,
  most: number,
) {
  const named = grants.flatMap(({ rules }) => rules.flatMap(({ container = [] }) => container))
  const used = (await context.containerSets.all()).flatMap(({ containers }) => containers)
  // An empty vault shows the usual containers of the token types.
  const usual = TOKEN_TYPES.flatMap(({ containers }) => containers)
  const isEmpty = named.length + used.length === 0
  const { chosen, total } = chooseContainers(named, isEmpty ? usual : used, wanted, most)
  return { samples: await readSamples(context, chosen), containers: total }
}

async function makeExamples(session: Session, samples: readonly Sample[]) {
  const toExample = createExamples(session)
  const examples: ExampleContainer[] = []
  for (const sample of samples) examples.push(await toExample(sample))
  return examples
}

function describeContainer({ container, isUsed, mask, record: { type, data } }: ExampleContainer) {
  return { container, type, is_used: isUsed, mask, example: data }
}

async function takeTurn(
  { turns }: Session,
  { rules }: Pick<ApplicationRecord, 'rules'>,
  containers: readonly unknown[],
): Promise<void> {
  if (turns.use(containers.length * (CELL_STEPS + rules.length * RULE_STEPS))) await turns.next()
}

export const noun = {
  name: 'access',
  summary: 'Show which application sees what',
  operations: [matrix, preview],
}
