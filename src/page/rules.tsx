/** The form for an application and its rules, with a preview that the server computes. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { SEEN_WORDS } from '../domain/access/cell-text.js'
import type { ResultOf } from '../operations/all.js'
import { describeBy, SeenValue } from './access.js'
import { useAsked, useLive } from './api.js'
import type { Draft, RuleRow } from './draft.js'
import * as drafts from './draft.js'
import { Button, Choose, EditDialog, Failure, Field, TextArea } from './forms.js'
import { Note, Table } from './parts.js'
import { go, linkTo } from './route.js'
import { textOf as formatValue } from './schema-text.js'
import { countOf, formatJson } from './text.js'

type Preview = ResultOf<'access preview'>
type Permission = ResultOf<'app permissions'>[number]
/** Messages by the path of the property, such as `rules[0].container`. */
type Errors = Record<string, string[]>

const PREVIEW_DELAY_MS = 250
const TYPES = ['private', 'public', 'management']
const TRANSFORMS: Record<string, string> = {
  mask: SEEN_WORDS.masked,
  reveal: SEEN_WORDS.plain,
  redact: SEEN_WORDS.redacted,
}

interface EditProps {
  /** Undefined: the form creates an application. */
  id?: string | undefined
  type: string
  initial: Draft
}

export function EditApplication({ id, type: stored, initial }: EditProps) {
  const { ask } = useLive()
  const counter = useRef(0)
  const nextKey = () => ++counter.current
  const [type, setType] = useState(stored)
  const [draft, setDraft] = useState<Draft>(initial)
  const [rows, setRows] = useState(() => drafts.toRows(initial.rules, nextKey))
  /** Undefined while the form is shown instead of JSON. */
  const [json, setJson] = useState<string>()
  const [isChanged, setChanged] = useState(false)
  const whole = (): Draft => ({
    ...draft,
    ...(rows.length > 0 || draft.rules !== undefined ? { rules: rows.map(({ rule }) => rule) } : {}),
  })
  const read = (): Draft => (json === undefined ? whole() : parseDraft(json))
  const change = (next: RuleRow[]) => [setRows(next), setChanged(true)]
  const set = (name: string, value: unknown) => {
    const { [name]: _, ...rest } = draft
    setDraft(value === undefined ? rest : { ...draft, [name]: value })
    setChanged(true)
  }
  const [fault, setFault] = useState<string>()
  const turn = () => {
    if (json === undefined) return setJson(formatJson(whole()))
    try {
      const next = parseDraft(json)
      const why = drafts.whyNotShown(next)
      if (why !== undefined) return setFault(`The form cannot show this: ${why}.`)
      setDraft(next)
      setRows(drafts.toRows(next.rules, nextKey))
      setJson(undefined)
      setFault(undefined)
    } catch (error) {
      setFault((error as Error).message)
    }
  }
  const save = async () => {
    const input = read()
    if (id !== undefined) return ask('app update', { ...input, id })
    const created = await ask('app create', { type, ...input })
    return go(linkTo('applications', created.id))
  }
  const name = typeof draft.name === 'string' ? draft.name : ''
  const title = id === undefined ? 'New application' : `Permissions and rules of ${initial.name}`
  return (
    <EditDialog
      title={title}
      verb={id === undefined ? 'Create' : 'Save'}
      send={save}
      isChanged={isChanged}
      kind="primary"
      isWide
    >
      {json === undefined ? (
        <>
          <div class="form">
            <Field label="Name" value={name} change={(text) => set('name', text)} grows required />
            {id === undefined && <Choose label="Type" isShown of={TYPES} value={type} choose={setType} />}
            <Field
              label="Expires (UTC)"
              name="expires_at"
              type="datetime-local"
              step={1}
              value={formatValue('date', draft.expires_at)}
              change={(text) => set('expires_at', drafts.dateOf(text))}
            />
          </div>
          <RuleForm {...{ type, rows, change, nextKey, draft, set }} who={name || 'it'} />
        </>
      ) : (
        <TextArea label="Permissions and rules (JSON)" rows={16} text={json} change={setJson} />
      )}
      <Failure text={fault} />
      <div class="row">
        <Button class="quiet" text={json === undefined ? 'Edit as JSON' : 'Edit as form'} act={turn} />
        <span class="dim small">Create keys in a terminal: coffer app key create</span>
      </div>
    </EditDialog>
  )
}

function parseDraft(text: string): Draft {
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error('Write a JSON object.')
  return value as Draft
}

interface RuleFormProps {
  type: string
  who: string
  draft: Draft
  rows: RuleRow[]
  change(rows: RuleRow[]): void
  set(name: string, value: unknown): void
  nextKey(): number
}

function RuleForm({ type, who, draft, rows, change, set, nextKey }: RuleFormProps) {
  const all = useAsked('app permissions', { application_type: type }).result ?? []
  const { preview, errors, fault } = usePreview(type, draft, rows)
  const list = useRef<HTMLOListElement>(null)
  const [added, setAdded] = useState<number>()
  useEffect(() => {
    if (added !== undefined) list.current?.lastElementChild?.querySelector('input')?.focus()
  }, [added])
  const add = () => {
    const key = nextKey()
    change(drafts.addRule(rows, key))
    setAdded(key)
  }
  const containers = preview?.containers.map(({ container }) => container) ?? []
  return (
    <>
      {type !== 'management' && (
        <div class="stack">
          <div class="row">
            <h3>Rules</h3>
            <span class="dim small">If several rules match, the lowest number wins.</span>
            <Button class="push" text="Add a rule" act={add} />
          </div>
          <ol class="rule-rows" ref={list}>
            {rows.map((row, at) => (
              <RuleFields
                key={row.key}
                {...{ row, at, who, all, preview }}
                isLast={at === rows.length - 1}
                errors={errorsAt(errors, `rules[${at}]`)}
                set={(name, value) => change(drafts.setAttribute(rows, row.key, name, value))}
                move={(by) => change(drafts.moveRule(rows, row.key, by))}
                remove={() => change(rows.filter(({ key }) => key !== row.key))}
              />
            ))}
          </ol>
          {rows.length === 0 && <p class="dim small">No rule: only the permissions below decide.</p>}
        </div>
      )}
      <Permissions
        label={type === 'management' ? 'Permissions' : 'Permissions in all containers where no rule decides'}
        all={all}
        names={drafts.listOf(draft.permissions)}
        choose={(names) => set('permissions', names)}
        errors={errorsAt(errors, 'permissions')}
      />
      <datalist id="known-containers">
        {containers.map((container) => (
          <option key={container} value={container} />
        ))}
      </datalist>
      <PreviewTable {...{ who, preview, fault }} />
    </>
  )
}

/** Returns the messages at `path` and below. The result omits `path` from the paths of the messages. */
function errorsAt(errors: Errors, path: string): Errors {
  const entries = Object.entries(errors).filter(
    ([name]) => name === path || name.startsWith(`${path}.`) || name.startsWith(`${path}[`),
  )
  return Object.fromEntries(
    entries.map(([name, texts]) => [name.slice(path.length).replace(/^\./, ''), texts]),
  )
}

const textOf = (errors: Errors, name: string): string | undefined => {
  const texts = Object.entries(errors).filter(([path]) => path === name || path.startsWith(`${name}[`))
  return texts.length === 0 ? undefined : texts.flatMap(([, each]) => each).join(', ')
}

interface RuleFieldsProps {
  row: RuleRow
  at: number
  isLast: boolean
  who: string
  all: readonly Permission[]
  preview: Preview | undefined
  errors: Errors
  set(name: string, value: unknown): void
  move(by: -1 | 1): void
  remove(): void
}

function RuleFields({ row, at, isLast, who, all, preview, errors, set, move, remove }: RuleFieldsProps) {
  const { priority, container, transform, permissions, description } = row.rule
  const name = `rule ${at + 1}`
  const unknown = drafts.unknownPart(row.rule)
  const isKnown = typeof transform === 'string' && Object.hasOwn(TRANSFORMS, transform)
  const others = Object.keys(errors).filter(
    (path) => !drafts.FORM_ATTRIBUTES.some((each) => path.startsWith(each)),
  )
  return (
    <li>
      <fieldset>
        <legend>Rule {String(priority ?? '')}</legend>
        <div class="form">
          <Field
            label="Number"
            type="number"
            min="1"
            value={String(priority ?? '')}
            change={(text) => set('priority', text === '' ? undefined : Number(text))}
            error={textOf(errors, 'priority')}
          />
          <Field
            label="Container, and all below"
            list="known-containers"
            value={String(container ?? '')}
            change={(text) => set('container', text === '' ? undefined : text)}
            error={textOf(errors, 'container')}
            grows
          />
          <Choose
            label="Sees"
            isShown
            of={isKnown ? TRANSFORMS : { [String(transform)]: `${transform} (unknown)`, ...TRANSFORMS }}
            value={String(transform)}
            choose={(text) => set('transform', text)}
          />
          <Field
            label="Description"
            value={String(description ?? '')}
            change={(text) => set('description', text === '' ? undefined : text)}
            error={textOf(errors, 'description')}
            grows
          />
        </div>
        <Permissions
          label="Permissions"
          all={all}
          names={drafts.listOf(permissions)}
          choose={(names) => set('permissions', names)}
          errors={errorsAt(errors, 'permissions')}
        />
        {unknown && (
          <p class="small">
            Kept, but not understood by this form: <code>{JSON.stringify(unknown)}</code>
          </p>
        )}
        <Failure text={textOf(errors, 'transform')} />
        <Failure
          text={others.length === 0 ? undefined : others.map((each) => `${each}: ${errors[each]}`).join('; ')}
        />
        <div class="row">
          <RulePreview {...{ who, preview }} rule={row.rule} />
          <span class="row push">
            <Button text="Up" of={`: ${name}`} aria-disabled={at === 0} act={() => move(-1)} />
            <Button text="Down" of={`: ${name}`} aria-disabled={isLast} act={() => move(1)} />
            <Button class="danger" text="Remove" of={` ${name}`} act={remove} />
          </span>
        </div>
      </fieldset>
    </li>
  )
}

/** For example `support would see XXXXXXXXXXXX4242 in /pci/`. */
function RulePreview({
  who,
  preview,
  rule,
}: {
  who: string
  preview: Preview | undefined
  rule: RuleRow['rule']
}) {
  const at = preview?.containers.findIndex(({ container }) => container === rule.container) ?? -1
  const cell = preview?.cells[at]
  if (preview === undefined || cell === undefined) return <span class="dim small">&nbsp;</span>
  const isOwn = cell.rule === rule.priority
  return (
    <span class="seen small">
      <bdi>{who}</bdi> would see <SeenValue cell={cell} mask={preview.containers[at]!.mask} /> in{' '}
      <code>{cell.container}</code>
      {!isOwn && ` (${describeBy(cell)})`}
    </span>
  )
}

interface PermissionsProps {
  label: string
  all: readonly Permission[]
  names: readonly unknown[]
  choose(names: unknown[]): void
  errors: Errors
}

/** Also shows permissions that are unknown or that the type cannot have, so that a person can remove them. */
function Permissions({ label, all, names, choose, errors }: PermissionsProps) {
  const known = all.map(({ type }) => type)
  const others = names.filter((name): name is string => typeof name === 'string' && !known.includes(name))
  const texts = Object.values(errors).flat()
  const groups = useMemo(() => groupByNoun(all), [all])
  const box = (name: string, title: string) => (
    <label key={name} title={title}>
      <input
        type="checkbox"
        checked={names.includes(name)}
        onChange={(event) => choose(drafts.toggle(names, name, event.currentTarget.checked))}
      />
      {name}
    </label>
  )
  return (
    <details class="permissions">
      <summary>
        {label}: <span class="chosen">{names.length === 0 ? 'none' : names.map(String).join(', ')}</span>
      </summary>
      <div class="checks">
        {all.length > 0 && others.map((name) => box(name, 'Not known for this type of application'))}
        {groups.map(([noun, each]) => (
          <fieldset key={noun}>
            <legend>{noun}</legend>
            {each.map(({ type, description }) => box(type, description))}
          </fieldset>
        ))}
      </div>
      <Failure text={texts.length === 0 ? undefined : texts.join(', ')} />
    </details>
  )
}

function groupByNoun(all: readonly Permission[]): [noun: string, permissions: Permission[]][] {
  const groups = new Map<string, Permission[]>()
  for (const each of all) {
    const noun = each.type.split(':')[0]!
    groups.set(noun, [...(groups.get(noun) ?? []), each])
  }
  return [...groups]
}

/** Asks the server for a preview shortly after the last change. Drops answers to earlier drafts. */
function usePreview(type: string, draft: Draft, rows: readonly RuleRow[]) {
  const { read } = useLive()
  const [found, setFound] = useState<{ preview?: Preview; errors: Errors; fault?: string }>({ errors: {} })
  const permissions = drafts.listOf(draft.permissions)
  const input = { type, permissions, rules: rows.map(({ rule }) => rule) }
  const text = JSON.stringify(input)
  useEffect(() => {
    let isOver = false
    const ask = async () => {
      try {
        const preview = await read('access preview', JSON.parse(text))
        if (!isOver) setFound({ preview, errors: {} })
      } catch (error) {
        const { errors = {}, message } = error as Error & { errors?: Errors }
        if (!isOver) setFound(({ preview }) => ({ ...(preview && { preview }), errors, fault: message }))
      }
    }
    const timer = setTimeout(ask, PREVIEW_DELAY_MS)
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [text, read])
  return found
}

interface PreviewTableProps {
  who: string
  preview: Preview | undefined
  fault: string | undefined
}

function PreviewTable({ who, preview, fault }: PreviewTableProps) {
  return (
    <section class="card stack" aria-label="Preview">
      <h3>
        What <bdi>{who}</bdi> would see
      </h3>
      <div role="status">
        {fault !== undefined && (
          <Note kind="warn" title="No preview yet">
            {fault}
          </Note>
        )}
      </div>
      {fault === undefined && preview && <Previewed of={preview} />}
      <p class="dim small">
        Example values with <code>token:read</code>. The server decides as for a request, and stores nothing.
      </p>
    </section>
  )
}

/** Draws a row for each container with access, and one line with the containers without access. */
function Previewed({ of: { containers, cells, total_containers: total } }: { of: Preview }) {
  const rows = cells.map((cell, at) => ({ cell, mask: containers[at]!.mask }))
  const without = cells.filter(({ sees }) => sees === 'none').map(({ container }) => container)
  const left = total - containers.length
  return (
    <>
      <Table
        rows={rows.filter(({ cell }) => cell.sees !== 'none')}
        columns={[
          ['Container', '', ({ cell }) => <code>{cell.container}</code>],
          ['Sees', '', ({ cell, mask }) => <SeenCellText {...{ cell, mask }} />],
          ['Because', '', ({ cell }) => describeBy(cell)],
        ]}
      />
      {without.length > 0 && (
        <details class="permissions">
          <summary>No access in {countOf(without.length, 'container')}</summary>
          <code>{without.join(' ')}</code>
        </details>
      )}
      {left > 0 && <p class="dim small">{countOf(left, 'more container')} not shown.</p>}
    </>
  )
}

const SeenCellText = (props: Parameters<typeof SeenValue>[0]) => (
  <span class="seen">
    <SeenValue {...props} />
  </span>
)
