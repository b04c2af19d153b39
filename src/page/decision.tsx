import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Access } from '../control/page-work.js'
import type { Problem } from '../errors.js'
import type { ExplainedDecision } from '../framework/caller/decisions.js'
import type { RequestRecord } from '../framework/ports/control.js'
import type { ResultOf } from '../operations/all.js'
import { useAsked, useNameOf } from './api.js'
import { Button } from './forms.js'
import { Facts, Note, Seeing } from './parts.js'
import { isHidden } from './recorded.js'
import { linkTo } from './route.js'
import { ApplicationLink, Json } from './text.js'

export type Application = ResultOf<'app list'>['data'][number]
export type Rule = NonNullable<Application['rules']>[number]

function listWords(words: string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
}

function group<T>(all: readonly T[], split: (each: T) => [key: string, value: string]) {
  const groups = new Map<string, string[]>()
  for (const [key, value] of all.map(split)) groups.set(key, [...(groups.get(key) ?? []), value])
  return groups
}

/** For example `token intents`, `proxies`, `cards of Apple Pay`. */
function nameMany(noun: string): string {
  if (/^(?:apple|google) pay$/.test(noun))
    return `cards of ${noun.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase())}`
  if (noun.endsWith('s')) return noun
  return noun.endsWith('y') ? `${noun.slice(0, -1)}ies` : `${noun}s`
}

/** The last part of these permissions is no verb, or the parts before the verb are not its object. */
const PHRASES: Record<string, [nouns: string, verb: string]> = {
  'apple-pay:session': ['sessions of Apple Pay', 'manage'],
  'apple-pay:manage': ['domains, merchants and certificates of Apple Pay', 'manage'],
  'google-pay:manage': ['merchants and certificates of Google Pay', 'manage'],
  'account-updater:real-time:invoke': ['the account updater', 'ask'],
  'network-token:cryptogram': ['cryptograms of network tokens', 'create'],
}

/** For example `may create and read tokens, and read reactors and logs`. */
export function describePermissions(permissions: readonly string[]): string {
  const verbsOf = group(permissions, (each) => {
    const phrase = PHRASES[each]
    if (phrase !== undefined) return phrase
    const [verb = '', ...nouns] = each.split(':').toReversed()
    return [nameMany(nouns.toReversed().join(' ').replaceAll('-', ' ')), verb]
  })
  const nounsOf = group([...verbsOf], ([noun, verbs]) => [listWords(verbs), noun])
  const parts = [...nounsOf].map(([verbs, nouns]) => `${verbs} ${listWords(nouns)}`)
  return parts.length === 0 ? 'may do nothing' : `may ${parts.join(', and ')}`
}

export function RuleText({ rule }: { rule: Rule }) {
  const { container, permissions, description } = rule
  return (
    <span>
      {description && <span class="dim">“{description}”: </span>}
      {container === '/' ? 'Everywhere, ' : ['In ', <code key="in">{container}</code>, ' and below, ']}
      {describePermissions(permissions)}.
    </span>
  )
}

function describeReason({ reason, condition: of }: ExplainedDecision['passed_over'][number]): string {
  return `passed over: ${reason}${of ? ` (${of.attribute} ${of.operator} ${of.value})` : ''}`
}

type StepsProps = { decision: ExplainedDecision; application: Application | undefined }

function Steps({ decision, application }: StepsProps) {
  const { permission, container, token, decided_by, transform, passed_over } = decision
  const textOf = ({ priority, description }: Pick<Rule, 'priority' | 'description'>) => {
    const rule = application?.rules?.find((each) => each.priority === priority)
    return rule === undefined ? description : <RuleText rule={rule} />
  }
  const own = application?.permissions ?? [permission]
  const otherwise = {
    permissions: `Permissions of the application: it ${describePermissions(own)}.`,
    owner: 'The owner of the vault may do everything.',
    none: `Permissions of the application: ${application?.permissions?.join(', ') || 'none'}.`,
  }
  const decider = decided_by ?? 'none'
  const isRule = typeof decider === 'object'
  return (
    <>
      <p>
        {decision.of === 'session' && 'Session: '}
        {decision.of === 'authorizer' && 'Who authorized the session: '}
        May <b>{application?.name ?? 'the application'}</b> do <code>{permission}</code> on{' '}
        <code>{container}</code>
        {token && ' of '}
        {token && <a href={linkTo('tokens', token)}>{token}</a>}?
      </p>
      <ol class="steps">
        {passed_over.map((each) => (
          <li key={each.priority}>
            <b>Rule {each.priority}</b>
            <span>{textOf(each)}</span>
            <span class="dim">{describeReason(each)}</span>
          </li>
        ))}
        <li class={decided_by && 'decides'}>
          <b>{isRule ? `Rule ${decider.priority}` : 'Else'}</b>
          <span>{isRule ? textOf(decider) : otherwise[decider]}</span>
          {decided_by ? <Seeing transform={transform} /> : <span class="dim">passed over: not granted</span>}
        </li>
      </ol>
    </>
  )
}

/** Lists the rules by number, then the permissions. `decider`: the priority of the marked rule. */
export function Held({ of, decider }: { of: Application; decider?: number | undefined }) {
  const { rules = [], permissions = [] } = of
  const marked = useRef<HTMLLIElement>(null)
  useEffect(() => marked.current?.scrollIntoView({ block: 'nearest' }), [decider])
  const sorted = [...rules].sort((one, other) => one.priority - other.priority)
  return (
    <ol class="rules">
      {sorted.map((rule) => (
        <li key={rule.priority} {...(rule.priority === decider && { class: 'decider', ref: marked })}>
          <b>Rule {rule.priority}</b> <RuleText rule={rule} /> Data is <Seeing transform={rule.transform} />
          {rule.priority === decider && <span class="dim"> · decides this cell</span>}
        </li>
      ))}
      <li class="dim">
        {rules.length > 0 ? 'Else it' : 'It'} {describePermissions(permissions)}.
      </li>
    </ol>
  )
}

/** True if a request was refused because a permission is missing. */
export function isByGrants(request: RequestRecord): boolean {
  const { decisions = [] } = request
  const isRefused = decisions.some(({ decided_by }) => decided_by === undefined)
  return isRefused || problemOf(request).detail?.startsWith('This requires the permission') === true
}

/** Explains a 403 that no rule caused. */
function OtherReason({ request }: DecisionsProps) {
  if (request.status !== 403 || isByGrants(request)) return null
  const isByNet = problemOf(request).detail?.includes('--allow-net')
  return (
    <p>
      {isByNet
        ? 'Refused by --allow-net, not by a rule.'
        : 'Not refused by a rule. The tab Overview shows the reason.'}
    </p>
  )
}

/** Shows how much data the answer of a token operation contains, and the rules that decided this. */
export function DataSeen({ request, show }: DecisionsProps & { show(): void }) {
  const { decisions = [], application_id: id, operation = '', answer, status } = request
  const isOfTokens = operation.startsWith('token ') && status < 400 && answer !== undefined
  const seen = group(isOfTokens ? decisions : [], ({ of, decided_by: decider, transform = '' }) => [
    decider === undefined || of !== undefined ? '' : transform,
    typeof decider === 'object' ? `rule ${decider.priority}` : 'the permissions',
  ])
  seen.delete('')
  if (seen.size === 0 || id === undefined) return null
  return (
    <p class="row">
      Data:
      {[...seen].map(([transform, deciders]) => [
        <Seeing key={transform} transform={transform} />,
        `by ${listWords([...new Set(deciders)])}`,
      ])}
      <span>
        of <ApplicationLink id={id} />
      </span>
      <Button class="quiet" text="Show decision" act={show} />
    </p>
  )
}

interface DecisionsProps {
  request: RequestRecord
}

export function Decisions({ request }: DecisionsProps) {
  const { decisions = [], application_id: id, status, fault } = request
  const application = useAsked('app list', { id: [id ?? '-'], size: 1 }).result?.data[0]
  const nameOf = useNameOf()
  const refused = decisions.find(({ decided_by }) => decided_by === undefined)
  if (fault !== undefined) return <p class="dim">Decisions are not shown for a request with a fault.</p>
  if (decisions.length === 0)
    return status === 403 && !isByGrants(request) ? (
      <OtherReason request={request} />
    ) : status === 403 && application !== undefined ? (
      <>
        <h3>What {application.name} may do</h3>
        <Held of={application} />
        <p>
          <a class="button" href={linkTo('applications', application.id)}>
            Rules of {application.name}
          </a>
        </p>
      </>
    ) : (
      <p class="dim">No rule was evaluated.</p>
    )
  const priority = Math.max(0, ...(application?.rules ?? []).map((rule) => rule.priority)) + 1
  const { container, permission } = refused ?? {}
  const rule = { priority, container, transform: 'mask', permissions: [permission] }
  return (
    <>
      <OtherReason request={request} />
      {decisions.map((decision, at) => (
        <Steps key={at} decision={decision} application={application} />
      ))}
      {refused && (
        <>
          <Note title="Refused">No rule and no permission grants it.</Note>
          <Json label="A rule that would allow it, masked" isCopied value={rule} />
        </>
      )}
      {id !== undefined && (
        <p>
          <a class="button" href={linkTo('applications', id)}>
            Rules of {nameOf(id)}
          </a>
        </p>
      )}
    </>
  )
}

/**
 * Returns the problem document in the answer. If code wrote the answer, the result is empty, because only the shape of
 * the answer is recorded. If a reactor failed, the result has only a title.
 */
export function problemOf({ status, answer }: RequestRecord): Partial<Problem> {
  const isFailed = status === 0 || status >= 400
  if (!isFailed || typeof answer !== 'object' || answer === null) return {}
  if ((answer as Partial<Problem>).type === 'urn:coffer:problem:reactor-failed')
    return { title: 'reactor failed' }
  const { errors = {}, ...problem } = answer as Partial<Problem>
  const isShape = !Object.values(errors).every(Array.isArray) || isHidden(problem.detail ?? problem.title)
  return isShape ? {} : { ...problem, errors }
}

export function describeFailure(request: RequestRecord): string {
  const { fault, decisions = [], status } = request
  const { detail, title = 'answered by code', errors = {} } = problemOf(request)
  if (fault !== undefined) return `fault: ${fault}`
  const refused = status === 403 && decisions.find(({ decided_by }) => decided_by === undefined)
  if (refused) return `${refused.permission} is not granted on ${refused.container}`
  const [[name, texts] = []] = Object.entries(errors)
  return name === undefined ? (detail ?? title) : `${name}: ${texts?.join(', ')}`
}

export function Why({ request }: { request: RequestRecord }) {
  const { status, fault, decisions = [], application_id: id } = request
  const { detail, errors = {} } = problemOf(request)
  const refused = decisions.find(({ decided_by }) => decided_by === undefined)
  const facts = Object.entries(errors).map(([name, texts]) => [name, texts.join(', ')])
  const note = (title: string, text: ComponentChildren) => <Note title={title}>{text}</Note>
  if (fault !== undefined)
    return (
      <Note kind="warn" title={`A fault was applied to this request: ${fault}`}>
        <a href={linkTo('controls')}>Change the faults</a>
      </Note>
    )
  if (status !== 0 && status < 400) return null
  if (facts.length > 0)
    return note('Refused: the request is not valid', <Facts of={Object.fromEntries(facts)} />)
  // If code wrote the answer, the page shows the run of the code instead of a note.
  if (detail === undefined && refused === undefined) return null
  if (refused === undefined || status !== 403)
    return note(status >= 500 || status === 0 ? 'Failed' : 'Refused', detail)
  const { passed_over, permission, container, token } = refused
  const many =
    ['no rule, and does', 'one rule, which does'][passed_over.length] ??
    `${passed_over.length} rules, which do`
  return (
    <Note title={`Refused: nothing grants ${permission} here`}>
      <ApplicationLink id={id} /> has {many} not grant it on <code>{container}</code>
      {token && ` of ${token}`}.
    </Note>
  )
}

export function describeAccess({ decisions, transform }: Access): string {
  const decider = decisions.find(
    ({ decided_by }) => (transform === undefined) === (decided_by === undefined),
  )?.decided_by
  if (decider === undefined) return 'no rule and no permission grants it'
  if (typeof decider === 'string') return 'by its permissions'
  return `rule ${decider.priority}${decider.description ? `, “${decider.description}”` : ''}`
}
