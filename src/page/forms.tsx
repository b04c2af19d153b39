import type { ButtonHTMLAttributes, ComponentChildren, FormHTMLAttributes, InputHTMLAttributes } from 'preact'
import { createContext } from 'preact'
import { useContext, useEffect, useId, useRef, useState } from 'preact/hooks'
import { type Faults, fieldOf } from './schema-text.js'

type Children = { children?: ComponentChildren }

export const Failure = ({ text }: { text: string | undefined }) =>
  text === undefined ? null : (
    <div class="note bad" role="alert">
      {text}
    </div>
  )

const ActContext = createContext<(work: () => unknown) => unknown>((work) => work())
/** The provided function performs the action of a button and shows errors of the action. */
export const ActProvider = ActContext.Provider

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & {
  text: ComponentChildren
  of?: string | undefined
  act(): unknown
}

/** Only screen readers read `of`, after `text`. */
export function Button({ text, of, act, ...rest }: ButtonProps) {
  const perform = useContext(ActContext)
  return (
    <button
      type="button"
      aria-label={of && `${text}${of}`.replace(' …', '')}
      {...rest}
      onClick={() => perform(act)}
    >
      {text}
    </button>
  )
}

type CopyProps = { text: string; label?: string; of?: string; class?: string }

export function Copy({ text, label = 'Copy', ...rest }: CopyProps) {
  const [isDone, setDone] = useState(false)
  useEffect(() => {
    const timer = isDone ? setTimeout(() => setDone(false), 2000) : undefined
    return () => clearTimeout(timer)
  }, [isDone])
  const copy = () => navigator.clipboard.writeText(text).then(() => setDone(true))
  return <Button {...rest} text={isDone ? 'Copied' : label} act={copy} />
}

export type Fields = Record<string, string>
type FormProps = FormHTMLAttributes<HTMLFormElement> & { send(fields: Fields, data: FormData): unknown }

const FaultsContext = createContext<Faults>({})

interface Refusal {
  text?: string | undefined
  faults: Faults
}

/**
 * Sends the fields that are not empty. If `send` fails, shows each message beside its field, and other messages below
 * the form.
 */
export function Form({ send, children, ...rest }: FormProps) {
  const [{ text, faults }, setRefusal] = useState<Refusal>({ faults: {} })
  const form = useRef<HTMLFormElement>(null)
  const submit = (event: SubmitEvent & { currentTarget: HTMLFormElement }) => {
    event.preventDefault()
    const { currentTarget } = event
    const data = new FormData(currentTarget)
    const fields = Object.fromEntries([...data].filter(([, value]) => value !== '')) as Fields
    const fail = (caught: Error & { errors?: Faults }) => {
      const all = Object.entries(caught.errors ?? {})
      const names = new Set(
        [...currentTarget.elements].map((each) => fieldOf((each as HTMLInputElement).name)),
      )
      const atFields = all.filter(([path]) => names.has(fieldOf(path)))
      const isShown = all.length > 0 && atFields.length === all.length
      setRefusal({ text: isShown ? undefined : caught.message, faults: Object.fromEntries(atFields) })
    }
    void Promise.resolve()
      .then(() => send(fields, data))
      .then(() => setRefusal({ faults: {} }), fail)
  }
  useEffect(() => form.current?.querySelector<HTMLElement>('[aria-invalid]')?.focus(), [faults])
  return (
    <form {...rest} ref={form} onSubmit={submit}>
      <FaultsContext.Provider value={faults}>{children}</FaultsContext.Provider>
      <Failure text={text} />
    </form>
  )
}

/**
 * Returns attributes for the control of a field, and the texts below it: `help`, messages of the server about the
 * field, and `error`, a message of the page.
 */
export function useNotes(name: string | undefined, help?: ComponentChildren, error?: string) {
  const id = useId()
  const faults = Object.entries(useContext(FaultsContext)).filter(([path]) => fieldOf(path) === name)
  const describe = ([path, texts]: [string, string[]]) =>
    `${path.slice(name!.length).replace(/^\./, '')} ${texts.join(', ')}`.trim()
  const texts = [...faults.map(describe), ...(error === undefined ? [] : [error])]
  const ids = [help && `${id}help`, texts.length > 0 && `${id}fault`].filter(Boolean).join(' ')
  const notes = [
    help && (
      <span key="help" class="about" id={`${id}help`}>
        {help}
      </span>
    ),
    texts.length > 0 && (
      <span key="fault" class="fault" id={`${id}fault`}>
        {texts.join('. ')}
      </span>
    ),
  ]
  const control = {
    ...(ids !== '' && { 'aria-describedby': ids }),
    ...(texts.length > 0 && { 'aria-invalid': true as const }),
  }
  return { control, notes }
}

export type FieldProps = InputHTMLAttributes<HTMLInputElement> & {
  label: string
  help?: ComponentChildren
  grows?: boolean
  error?: string | undefined
  change?(value: string): void
}

export function Field({ label, help, error, grows, change, ...input }: FieldProps) {
  const { control, notes } = useNotes(input.name as string | undefined, help, error)
  return (
    <div class={`field ${grows ? 'grow' : ''}`}>
      <label>
        {label}
        <input
          autocomplete="off"
          {...input}
          {...control}
          onInput={(event) => change?.(event.currentTarget.value)}
        />
      </label>
      {notes}
    </div>
  )
}

interface TextAreaProps {
  label: string
  help?: ComponentChildren
  name?: string
  text: string
  rows: number
  placeholder?: string | undefined
  change?(text: string): void
}

/** `text`: the current text. Without `change`: the initial text. */
export function TextArea({ label, help, text, change, ...rest }: TextAreaProps) {
  const { control, notes } = useNotes(rest.name, help)
  const value = change === undefined ? { defaultValue: text } : { value: text }
  const input = (event: { currentTarget: HTMLTextAreaElement }) => change?.(event.currentTarget.value)
  return (
    <div class="field">
      <label>
        {label}
        <textarea spellcheck={false} autocomplete="off" {...rest} {...value} {...control} onInput={input} />
      </label>
      {notes}
    </div>
  )
}

type CheckProps = { label: string; isOn: boolean; turn(isOn: boolean): void }

export const Check = ({ label, isOn, turn }: CheckProps) => (
  <label>
    <input type="checkbox" checked={isOn} onChange={(event) => turn(event.currentTarget.checked)} />
    {label}
  </label>
)

/** Values, or an object from each value to its text. */
export type Choices = Record<string, string> | readonly string[]
export const wordsOf = (of: Choices): Record<string, string> =>
  Array.isArray(of) ? Object.fromEntries(of.map((each) => [each, each])) : (of as Record<string, string>)

/**
 * `value`: the current choice. Without `choose`: the initial choice, so that a new rendering keeps the choice of the
 * person.
 */
interface ChooseProps {
  label: string
  help?: ComponentChildren
  name?: string
  isShown?: boolean
  of: Choices
  value: string
  choose?(value: string): void
}

export function Choose({ label, help, name, of, value, choose, isShown = false }: ChooseProps) {
  const { control, notes } = useNotes(name, help)
  const change = (event: { currentTarget: HTMLSelectElement }) => choose?.(event.currentTarget.value)
  const select = (
    <select name={name} {...(choose && { value })} {...control} aria-label={label} onChange={change}>
      {Object.entries(wordsOf(of)).map(([each, text]) => (
        <option key={each} value={each} selected={each === value}>
          {text}
        </option>
      ))}
    </select>
  )
  if (!isShown) return select
  return (
    <div class="field">
      {/* biome-ignore lint/a11y/noLabelWithoutControl: the control is in a variable. */}
      <label>{[label, select]}</label>
      {notes}
    </div>
  )
}

const DialogContext = createContext<(dialog?: ComponentChildren) => void>(() => undefined)
export const DialogProvider = DialogContext.Provider
/** The returned function shows a dialog over the page. A call without a dialog closes the current dialog. */
export const useDialog = () => useContext(DialogContext)

type DialogProps = Children & { title: string; isEdit?: boolean; isWide?: boolean; isChanged?: boolean }

/**
 * A button of type `reset` closes the dialog. `isEdit`: Escape asks before it discards changes. `isChanged`: something
 * other than an input field has changed.
 */
export function Dialog({
  title,
  isEdit = false,
  isWide = false,
  isChanged: isOwn = false,
  children,
}: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const show = useDialog()
  const id = useId()
  const [isChanged, setChanged] = useState(false)
  const [isAsking, setAsking] = useState(false)
  useEffect(() => dialog.current!.showModal(), [])
  // The browser lets a second Escape close the dialog.
  const cancel = (event: Event) => {
    if (!isEdit || !(isChanged || isOwn) || isAsking) return
    event.preventDefault()
    setAsking(true)
  }
  return (
    <dialog
      ref={dialog}
      class={isWide ? 'is-wide' : ''}
      aria-labelledby={id}
      onInput={() => setChanged(true)}
      onCancel={cancel}
      onClose={() => show()}
      onReset={() => dialog.current!.close()}
    >
      <div class="stack">
        <h2 id={id}>{title}</h2>
        {children}
        <Failure text={isAsking ? 'Press Escape again to discard the changes.' : undefined} />
      </div>
    </dialog>
  )
}

export const Submit = ({ text, kind = '' }: { text: string; kind?: string }) => (
  <button type="submit" class={kind}>
    {text}
  </button>
)

interface EditDialogProps extends Pick<DialogProps, 'title' | 'isWide' | 'isChanged' | 'children'> {
  verb: string
  send(fields: Fields, data: FormData): Promise<unknown>
  kind?: 'primary' | 'danger'
}

export function EditDialog({ verb, send, kind = 'primary', children, ...rest }: EditDialogProps) {
  const show = useDialog()
  return (
    <Dialog {...rest} isEdit>
      <Form class="stack" send={async (fields, data) => [await send(fields, data), show()]}>
        {children}
        <div class="row">
          <Submit text={verb} kind={kind} />
          <button type="reset">Cancel</button>
        </div>
      </Form>
    </Dialog>
  )
}

type ConfirmProps = Record<'title' | 'text' | 'verb', string> & { act(): Promise<unknown> }

export const Confirm = ({ text, act, ...rest }: ConfirmProps) => (
  <EditDialog kind="danger" send={act} {...rest}>
    <p>{text}</p>
  </EditDialog>
)

type Panel = (open: (title: string) => void) => ComponentChildren

/** `tabs`: functions that render the panels, by title. `open` opens another tab and moves the focus to the tab. */
export function Tabs({ label, tabs }: { label: string; tabs: Record<string, Panel> }) {
  const [chosen, setChosen] = useState('')
  const id = useId()
  const names = Object.keys(tabs)
  const current = Math.max(0, names.indexOf(chosen))
  const open = (name: string) => {
    setChosen(name)
    document.getElementById(`${id}-${names.indexOf(name)}`)?.focus()
  }
  const turn = (event: KeyboardEvent & { currentTarget: HTMLElement }) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key]
    if (by === undefined) return
    const next = (current + by + names.length) % names.length
    setChosen(names[next]!)
    event.currentTarget.querySelectorAll('button')[next]?.focus()
  }
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} onKeyDown={turn}>
        {names.map((name, at) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${id}-${at}`}
            aria-controls={id}
            aria-selected={at === current}
            tabIndex={at === current ? 0 : -1}
            onClick={() => setChosen(name)}
          >
            {name}
          </button>
        ))}
      </div>
      <div class="stack" role="tabpanel" id={id} aria-labelledby={`${id}-${current}`}>
        {tabs[names[current]!]!(open)}
      </div>
    </>
  )
}
