/** Buttons, fields and dialogs. */
import type { ButtonHTMLAttributes, ComponentChildren, FormHTMLAttributes, InputHTMLAttributes } from 'preact'
import { useEffect, useId, useRef } from 'preact/hooks'
import { useAction } from './api.js'

type Children = { children?: ComponentChildren }

export const Failure = ({ text }: { text: string | undefined }) =>
  text === undefined ? null : (
    <div class="note bad" role="alert">
      {text}
    </div>
  )

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & { text: ComponentChildren; act(): unknown }

export function Button({ text, act, ...rest }: ButtonProps) {
  return (
    <button type="button" {...rest} onClick={act}>
      {text}
    </button>
  )
}

export type Fields = Record<string, string>

/** Sends the fields that are not empty. */
export function Form({
  send,
  ...rest
}: FormHTMLAttributes<HTMLFormElement> & { send(fields: Fields): unknown }) {
  return (
    <form
      {...rest}
      onSubmit={(event) => {
        event.preventDefault()
        const fields = [...new FormData(event.currentTarget)].filter(([, value]) => value !== '')
        send(Object.fromEntries(fields) as Fields)
      }}
    />
  )
}

type FieldProps = InputHTMLAttributes<HTMLInputElement> & {
  label: string
  grows?: boolean
  change?(value: string): void
}

export function Field({ label, grows, change, ...input }: FieldProps) {
  return (
    <label class={grows ? 'grow' : ''}>
      {label}
      <input autocomplete="off" {...input} onInput={(event) => change?.(event.currentTarget.value)} />
    </label>
  )
}

interface TextAreaProps {
  label: string
  name?: string
  text: string
  rows: number
  change?(text: string): void
}

/** With `change`, `text` is what is written in it, else what it begins with. */
export function TextArea({ label, text, change, ...rest }: TextAreaProps) {
  const value = change === undefined ? { defaultValue: text } : { value: text }
  return (
    <label>
      {label}
      <textarea
        spellcheck={false}
        {...rest}
        {...value}
        onInput={(event) => change?.(event.currentTarget.value)}
      />
    </label>
  )
}

interface CheckProps {
  label: string
  isOn: boolean
  turn(isOn: boolean): void
}

export const Check = ({ label, isOn, turn }: CheckProps) => (
  <label>
    <input type="checkbox" checked={isOn} onChange={(event) => turn(event.currentTarget.checked)} />
    {label}
  </label>
)

interface Choice {
  /** Values and their words. */
  of: Record<string, string>
  value?: string
  choose?(value: string): void
}

export function Choose({
  label,
  name,
  of,
  value,
  choose,
  isShown = false,
}: Choice & { label: string; name?: string; isShown?: boolean }) {
  const select = (
    <select
      name={name}
      value={value}
      aria-label={label}
      onChange={(event) => choose?.(event.currentTarget.value)}
    >
      {Object.entries(of).map(([each, text]) => (
        <option key={each} value={each} selected={each === value}>
          {text}
        </option>
      ))}
    </select>
  )
  if (!isShown) return select
  // biome-ignore lint/a11y/noLabelWithoutControl: the control is in a variable.
  return <label>{[label, select]}</label>
}

/** Opens when it is there. Any of its buttons of type `reset` closes it. */
export function Dialog({ title, close, children }: Children & { title: string; close(): void }) {
  const dialog = useRef<HTMLDialogElement>(null)
  const id = useId()
  useEffect(() => dialog.current!.showModal(), [])
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={close} onReset={() => dialog.current!.close()}>
      <div class="stack">
        <h2 id={id}>{title}</h2>
        {children}
      </div>
    </dialog>
  )
}

/** Asks before something is lost. */
export function Confirm({
  title,
  text,
  verb,
  act,
  close,
}: Record<'title' | 'text' | 'verb', string> & { act(): unknown; close(): void }) {
  return (
    <Dialog title={title} close={close}>
      <p>{text}</p>
      <Form
        class="row"
        send={() => {
          act()
          close()
        }}
      >
        <button type="submit" class="danger">
          {verb}
        </button>
        <button type="reset">Cancel</button>
      </Form>
    </Dialog>
  )
}

/** A form that closes when what it asks for is done. */
export function EditDialog({
  title,
  verb,
  send,
  close,
  children,
}: Children & { title: string; verb: string; send(fields: Fields): Promise<unknown>; close(): void }) {
  const { act, error } = useAction()
  return (
    <Dialog title={title} close={close}>
      <Form class="stack" send={async (fields) => (await act(() => send(fields))) && close()}>
        {children}
        <Failure text={error} />
        <div class="row">
          <button type="submit" class="primary">
            {verb}
          </button>
          <button type="reset">Cancel</button>
        </div>
      </Form>
    </Dialog>
  )
}
