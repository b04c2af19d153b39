import { formatDate } from '../../domain/dates.js'
import { omitUndefined } from '../../domain/omit-undefined.js'
import { addError, refuseErrors } from '../../domain/property-errors.js'
import type { IntentRecord, ThreeDsSessionRecord, TokenRecord } from '../../domain/records/records.js'
import { DEFAULT_PUBLIC_URL } from '../../domain/settings.js'
import {
  APP_INFO,
  BROWSER_INFO,
  checkDeviceInfo,
  checkSession,
  chooseBrand,
  keepDeviceInfo,
  OPTIONAL_BROWSER_INFO,
} from '../../domain/threeds/request.js'
import { type Scenario, scenarioOf } from '../../domain/threeds/scenarios.js'
import { isAuthenticated, SESSION_MS } from '../../domain/threeds/session.js'
import { STEP_MESSAGES } from '../../domain/threeds/steps.js'
import { viewCreated } from '../../domain/threeds/view.js'
import { checkMetadata } from '../../domain/token/token.js'
import { CofferError, conflict, invalid, type PropertyErrors } from '../../errors.js'
import type { Context } from '../../framework/context.js'
import { requires } from '../../framework/declaration.js'
import { change } from '../../framework/operation.js'
import { type Infer, inputSchema } from '../../framework/schema.js'
import { logTokenUse } from '../token/token-access.js'
import { eventAbout, requireSession, storeSession, THREE_DS, tellByCaller } from './changes.js'
import { CREATE_EXAMPLE, UPDATE_EXAMPLE } from './examples.js'
import { createInput, deviceInfo, sessionId } from './inputs.js'
import { createdOutput } from './outputs.js'
import { insertPlace } from './place.js'
import { serviceFailed } from './service-error.js'

type Request = Infer<typeof createInput>

const NO_CARD = 'must be the id of an existing card: a token or token intent of the type card'

/** Clients compare this text, so it must not change. */
const NO_SCHEME = 'The card was not supported by any card schemes'

export const createSession = change({
  name: '3ds create',
  summary: 'Create a session of 3-D Secure for a card.',
  details:
    'The number of the card decides what happens: coffer help test-cards. Any other card is refused, unless the\n' +
    'setting threeds.other_cards is frictionless. The session expires when its token expires. If the token does not\n' +
    'expire, the session expires after an hour.',
  access: requires('3ds:session:create'),
  route: 'POST /3ds/sessions',
  http: { status: 201, mayFailOutside: true },
  log: { operation: 'create', message: STEP_MESSAGES.created },
  input: createInput,
  output: createdOutput,
  examples: [CREATE_EXAMPLE],
  check: (input) => {
    const errors = checkSession(input as Parameters<typeof checkSession>[0])
    refuseWrongMetadata(errors, input.metadata)
    refuseErrors(errors)
  },
  async run(context, input) {
    const { store, caller, now } = context
    const card = await requireCard(context, input)
    const others = await context.setting('threeds.other_cards')
    // Imported only here, because this module contains the whole table of test cards.
    const { findTestCard } = await import('../../domain/threeds/cards.js')
    const { brands, scenario } = findTestCard((card.data as { number: string }).number, others)
    refuseAtCreation(scenarioOf(scenario))
    refuseStrangeBrand(brands, input)
    const expires = card.expires_at === undefined ? now + SESSION_MS : Date.parse(card.expires_at)
    const session: ThreeDsSessionRecord = {
      id: context.createUuid(),
      tenant_id: (await context.tenant()).id,
      ...describeRequest(input, context),
      ...(card.is_intent ? { token_intent_id: card.id } : { token_id: card.id }),
      brands,
      scenario,
      base: await findBase(context),
      ...(hasMethod(input, scenarioOf(scenario)) && { method: 'waiting' as const }),
      expires_at: formatDate(expires),
      created_by: caller.actor.id,
      created_at: context.date,
    }
    await store.insert(THREE_DS, caller.tenant, session, { fresh: true, expires })
    await insertPlace(store, caller.tenant, session.id, expires)
    context.audit.record(THREE_DS, session.id)
    await logTokenUse(context, card, { operation: 'use', message: 'Token used' })
    context.audit.emit(eventAbout('3ds.session.created', session))
    return viewCreated(session)
  },
})

export function refuseWrongMetadata(errors: PropertyErrors, metadata: unknown): void {
  if (metadata !== undefined) checkMetadata(metadata, errors)
}

/** An empty map is not stored. */
export function keepMetadata(metadata: Record<string, string> | undefined) {
  return metadata === undefined || Object.keys(metadata).length === 0 ? undefined : metadata
}

async function findBase(context: Context): Promise<string> {
  return (await context.setting('public_url')) ?? context.origin?.base ?? DEFAULT_PUBLIC_URL
}

type Described = Pick<
  ThreeDsSessionRecord,
  'type' | 'device' | 'device_info' | 'web_challenge_mode' | 'metadata' | 'redirect'
>

function describeRequest(input: Request, { origin }: Context): Described {
  const { type = 'customer', device, device_info, web_challenge_mode } = input
  const metadata = keepMetadata(input.metadata)
  if (type === 'merchant' || device === undefined) return { type, ...(metadata && { metadata }) }
  const isBrowser = device === 'browser'
  const known = isBrowser
    ? keepDeviceInfo(device_info, [...BROWSER_INFO, ...OPTIONAL_BROWSER_INFO])
    : undefined
  const accepts = omitUndefined({ browser_accept_header: origin?.accept })
  return {
    type,
    device,
    ...omitUndefined({
      device_info: known && { ...accepts, ...known },
      web_challenge_mode: web_challenge_mode ?? (isBrowser ? ('iframe' as const) : undefined),
      metadata,
      redirect: readRedirect(input),
    }),
  }
}

function readRedirect({
  authentication_request: request,
  callback_urls: urls,
}: Request): Described['redirect'] {
  if (request === undefined || urls === undefined) return undefined
  const { success, failure, branding } = urls
  const hides_branding = branding?.hide_basis_theory_branding
  const callback_urls = { success, failure, ...omitUndefined({ hides_branding }) }
  return { request: { ...request }, callback_urls }
}

function hasMethod({ type, device }: Request, { hasNoMethod }: Scenario): boolean {
  return type !== 'merchant' && device === 'browser' && hasNoMethod !== true
}

async function requireCard(
  { store, caller: { tenant } }: Context,
  { token_id, token_intent_id, pan }: Request,
): Promise<TokenRecord | IntentRecord> {
  if (token_intent_id !== undefined) {
    const intent = await store.get('token_intent', tenant, token_intent_id)
    if (intent?.type === 'card') return intent
    throw invalid('token_intent_id', NO_CARD)
  }
  const token = await store.get('token', tenant, token_id ?? pan ?? '')
  if (token?.type === 'card') return token
  throw invalid(token_id === undefined ? 'pan' : 'token_id', NO_CARD)
}

/**
 * Checks the brand in the authentication request now, because the page that later uses the request cannot report an
 * error to the merchant.
 * @throws CofferError `validation`
 */
function refuseStrangeBrand(
  brands: ThreeDsSessionRecord['brands'],
  { authentication_request: request }: Request,
): void {
  const { card_brand } = request ?? {}
  if (card_brand === undefined || chooseBrand({ brands }, card_brand) !== undefined) return
  throw invalid('authentication_request.card_brand', `must be a brand of the card: ${brands.join(', ')}`)
}

/** @throws CofferError `threeds_unsupported`, `threeds_failed` */
function refuseAtCreation({ isUnsupported, failsAt }: Scenario): void {
  if (isUnsupported)
    throw new CofferError('threeds_unsupported', "Check the 'errors' property for more details", {
      errors: { [NO_SCHEME]: ['Cardholder Account Number is not in a range belonging to Issuer.'] },
    })
  if (failsAt === 'create')
    throw serviceFailed({
      service_status: '500',
      session_id: '',
      error_source: '3DS Server',
      message: 'The 3DS server failed.',
      detail: 'This test card makes the creation of a session fail.',
    })
}

export const updateSession = change({
  name: '3ds update',
  summary: 'Add the description of the device to the session of an app.',
  details: 'This is possible only until the session is authenticated.',
  access: { ...requires('3ds:session:create'), refusesSessions: true },
  route: 'PUT /3ds/sessions/{id}',
  log: { operation: 'update', message: STEP_MESSAGES.described },
  input: inputSchema(['id', 'device_info'], { id: sessionId, device_info: deviceInfo }),
  output: createdOutput,
  examples: [UPDATE_EXAMPLE],
  check: ({ device_info }) => {
    const errors: PropertyErrors = {}
    checkDeviceInfo(errors, device_info, APP_INFO)
    refuseErrors(errors)
  },
  async run(context, { id, device_info }) {
    const { store, caller } = context
    const session = await requireSession(store, caller.tenant, id)
    if (isAuthenticated(session)) throw conflict('This session is authenticated already.')
    const errors: PropertyErrors = {}
    if (session.device !== 'app')
      addError(errors, 'device_info', 'can be changed only for sessions of an app')
    refuseErrors(errors)
    const described = { ...session, ...omitUndefined({ device_info: keepDeviceInfo(device_info, APP_INFO) }) }
    const changed = await storeSession(context, caller.tenant, described, { by: caller.actor.id })
    const entry = { operation: 'update', message: STEP_MESSAGES.described } as const
    tellByCaller(context, { session: changed, entry, events: [] })
    return viewCreated(changed)
  },
})
