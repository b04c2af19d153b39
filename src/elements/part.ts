/**
 * One input of a field. No attribute or event contains the text of a part, so the page can read the text only from the
 * input.
 */
import { placeCaret } from './caret.js'
import type { FieldError } from './errors.js'
import type { Kind } from './kinds.js'
import type { FieldOptions } from './options.js'
import type { Reading } from './reading.js'
import { styleInput } from './style.js'

export interface Appearance {
  label: string
  placeholder: string | undefined
  autoComplete: string | undefined
}

export interface PartListener {
  onInput(): void
  onFocus(): void
  onBlur(): void
  onKey(event: KeyboardEvent): void
}

const KEYS = ['Enter', 'Escape']

export class Part {
  readonly kind: Kind
  readonly targetId: string
  readonly #options: () => FieldOptions
  #text = ''
  #isFaultShown = false
  #input: HTMLInputElement | undefined

  /** `options` are read at each use, because they can change. */
  constructor(kind: Kind, targetId: string, options: () => FieldOptions) {
    this.kind = kind
    this.targetId = targetId
    this.#options = options
  }

  get text(): string {
    return this.#text
  }

  read(): Reading {
    return this.kind.read(this.#text, this.#options(), new Date())
  }

  /** The fault that events report. Validation decides when the fault appears. */
  get shownError(): FieldError | undefined {
    const { fault } = this.read()
    return this.#isFaultShown && fault !== undefined ? { targetId: this.targetId, type: fault } : undefined
  }

  showFault(): void {
    this.#isFaultShown = this.read().fault !== undefined
    this.#markFault()
  }

  setText(text: string): void {
    this.#text = this.kind.format(text, this.#options())
    this.#updateFault()
    // The input is written only if its text differs, because writing to an input moves its caret.
    if (this.#input !== undefined && this.#input.value !== this.#text) this.#input.value = this.#text
  }

  mount(container: Element, listener: PartListener): void {
    const input = container.ownerDocument.createElement('input')
    // An empty attribute `form` takes the input out of its form: the form neither sends nor resets the input, and
    // Enter does not submit the form.
    input.setAttribute('form', '')
    input.value = this.#text
    input.addEventListener('input', () => {
      this.#acceptTyped(input)
      listener.onInput()
    })
    input.addEventListener('focus', listener.onFocus)
    input.addEventListener('blur', listener.onBlur)
    input.addEventListener('keydown', (event) => {
      if (KEYS.includes(event.key)) listener.onKey(event)
    })
    container.append(input)
    this.#input = input
  }

  unmount(): void {
    this.#input = undefined
    this.#text = ''
    this.#isFaultShown = false
  }

  focus(): void {
    this.#input?.focus()
  }

  blur(): void {
    this.#input?.blur()
  }

  show({ label, placeholder = '', autoComplete = 'off' }: Appearance): void {
    const input = this.#input
    if (input === undefined) return
    const { disabled = false, readOnly = false, password = false, inputMode, style } = this.#options()
    input.type = password ? 'password' : 'text'
    input.disabled = disabled
    input.readOnly = readOnly
    input.placeholder = placeholder
    input.autocomplete = autoComplete as AutoFill
    input.inputMode = inputMode ?? this.kind.inputMode ?? ''
    input.setAttribute('aria-label', label)
    styleInput(input, style?.base ?? {})
  }

  #acceptTyped(input: HTMLInputElement): void {
    const typed = input.value
    const caret = input.selectionStart ?? typed.length
    const formatted = this.#formatTyped(typed)
    this.#text = formatted
    if (this.#options().validateOnChange === true) this.#isFaultShown = true
    this.#updateFault()
    if (formatted === typed) return
    input.value = formatted
    const place = placeCaret(typed, caret, formatted)
    input.setSelectionRange(place, place)
  }

  /**
   * If the user deletes a separator at the end, the field also removes the character before the separator. If only
   * the separator were deleted, the field would insert it again.
   */
  #formatTyped(typed: string): string {
    const before = this.#text
    const formatted = this.kind.format(typed, this.#options())
    const isDeletion = typed.length < before.length && before.startsWith(typed)
    if (!isDeletion || formatted !== before) return formatted
    return this.kind.format(typed.slice(0, -1), this.#options())
  }

  /**
   * While the user types, a shown fault can disappear. Without `validateOnChange`, no new fault appears before the next
   * check.
   */
  #updateFault(): void {
    if (this.read().fault === undefined) this.#isFaultShown = false
    this.#markFault()
  }

  #markFault(): void {
    if (this.shownError === undefined) this.#input?.removeAttribute('aria-invalid')
    else this.#input?.setAttribute('aria-invalid', 'true')
  }
}
