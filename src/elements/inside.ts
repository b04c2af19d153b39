/** The inside of a field, which the page does not get: its inputs, its state and its listeners. */
import type { FieldError } from './errors.js'
import { Listeners } from './events.js'
import { checkOptions, type FieldOptions } from './options.js'
import type { Part } from './part.js'
import { openPlace, type Place } from './place.js'
import type { CardDetails } from './reading.js'

export interface State extends Partial<CardDetails> {
  empty: boolean
  complete: boolean
  valid: boolean
  maskSatisfied?: boolean
  errors?: FieldError[]
}

/** The differences between the types of fields. */
export interface Shape {
  type: string
  createParts(options: () => FieldOptions): Part[]
  /** The value of a request: a text, or an object for a whole card. */
  valueOf(parts: readonly Part[]): unknown
  /** The text of each part for the option `value`. */
  textsOf(value: unknown): string[]
  show(parts: readonly Part[], options: FieldOptions): void
}

export class Inside {
  readonly listeners = new Listeners()
  readonly shape: Shape
  readonly parts: readonly Part[]
  readonly #hasFrame: boolean
  #options: FieldOptions
  #place: Place | undefined
  #reported = ''
  /** Fields that show the text of this field. */
  readonly #followers = new Set<Inside>()
  #stopFollowing: (() => void) | undefined

  constructor(shape: Shape, options: FieldOptions, hasFrame: boolean) {
    checkOptions(options)
    this.shape = shape
    this.#options = options
    this.#hasFrame = hasFrame
    this.parts = shape.createParts(() => this.#options)
  }

  get isMounted(): boolean {
    return this.#place !== undefined
  }

  get targetId(): string {
    return this.#options.targetId ?? this.shape.type
  }

  get state(): State {
    const readings = this.parts.map((part) => part.read())
    const errors = this.parts.flatMap(({ shownError }) => shownError ?? [])
    const isMaskSatisfied = readings[0]!.isMaskSatisfied
    return {
      empty: readings.every(({ isEmpty }) => isEmpty),
      complete: readings.every(({ isComplete }) => isComplete),
      valid: readings.every(({ isValid }) => isValid),
      ...(isMaskSatisfied === undefined ? {} : { maskSatisfied: isMaskSatisfied }),
      ...(errors.length === 0 ? {} : { errors }),
      ...readings[0]!.card,
    }
  }

  get faults(): FieldError[] {
    return this.parts.flatMap((part) => {
      const { fault } = part.read()
      return fault === undefined ? [] : { targetId: part.targetId, type: fault }
    })
  }

  get value(): unknown {
    return this.shape.valueOf(this.parts)
  }

  /** @throws Error if the element does not exist, or if the field is already mounted */
  async mount(place: string | Element): Promise<void> {
    const target = typeof place === 'string' ? document.querySelector(place) : place
    if (target == null) throw new Error(`There is no element ${String(place)} to mount the field into.`)
    if (this.#place !== undefined) throw new Error('The field is mounted already.')
    const { title } = this.#options
    const frameTitle = this.#hasFrame ? (title ?? this.targetId) : undefined
    this.#place = await openPlace(target, this.shape.type, frameTitle)
    for (const part of this.parts) part.mount(this.#place.container, this.#listen(part))
    this.#reported = JSON.stringify(this.state)
    this.#applyOptions(this.#options)
    queueMicrotask(() => {
      if (this.#place === undefined) return
      this.listeners.emit('ready')
      this.report()
    })
  }

  unmount(): void {
    this.#place?.remove()
    this.#place = undefined
    this.#stopFollowing?.()
    for (const part of this.parts) part.unmount()
    this.listeners.reset()
  }

  update(options: FieldOptions): void {
    checkOptions(options)
    this.#options = { ...this.#options, ...options }
    this.#applyOptions(options)
    this.report()
  }

  setTexts(texts: readonly string[]): void {
    for (const [at, part] of this.parts.entries()) part.setText(texts[at] ?? '')
    this.report()
  }

  validate(): void {
    for (const part of this.parts) part.showFault()
    this.report()
  }

  follow(source: Inside): void {
    this.#stopFollowing?.()
    source.#followers.add(this)
    this.#stopFollowing = () => source.#followers.delete(this)
    this.setTexts(source.parts.map(({ text }) => text))
  }

  /** Emits `change` only if the state has changed. */
  report(): void {
    const { state } = this
    const described = JSON.stringify(state)
    if (described !== this.#reported && this.isMounted) {
      this.#reported = described
      this.listeners.emit('change', state)
    }
    const texts = this.parts.map(({ text }) => text)
    for (const follower of this.#followers)
      if (follower.parts.some(({ text }, at) => text !== texts[at])) follower.setTexts(texts)
  }

  #applyOptions(changed: FieldOptions): void {
    const { value } = changed
    const given = value === undefined ? [] : this.shape.textsOf(value)
    // Options such as a mask or a brand change how the text looks.
    for (const [at, part] of this.parts.entries()) part.setText(given[at] ?? part.text)
    this.shape.show(this.parts, this.#options)
  }

  #listen(part: Part) {
    const { targetId } = part
    return {
      onInput: () => {
        // The other parts format their texts again, because the brand of the card number decides how long the
        // verification code is.
        for (const other of this.parts) if (other !== part) other.setText(other.text)
        this.report()
      },
      onFocus: () => this.listeners.emit('focus', { targetId }),
      onBlur: () => {
        if (!part.read().isEmpty) part.showFault()
        this.report()
        this.listeners.emit('blur', { targetId, ...this.state })
      },
      onKey: ({ key, altKey, ctrlKey, shiftKey, metaKey }: KeyboardEvent) =>
        this.listeners.emit('keydown', { targetId, key, altKey, ctrlKey, shiftKey, metaKey }),
    }
  }
}
