/** The place of a field in the page: an element, or a frame in that element. */
import { styleFrame, styleRow } from './style.js'

export interface Place {
  container: HTMLElement
  remove(): void
}

/**
 * Events that do not leave a field. Events of a hosted field do not reach the page either, because the hosted field is
 * in a frame of another origin.
 */
const KEPT_EVENTS = [
  'beforeinput',
  'input',
  'change',
  'keydown',
  'keypress',
  'keyup',
  'copy',
  'cut',
  'paste',
  'focusin',
  'focusout',
]

/** `frameTitle`: the title of the frame; undefined for a place without a frame. */
export async function openPlace(
  target: Element,
  type: string,
  frameTitle: string | undefined,
): Promise<Place> {
  const { ownerDocument: document } = target
  const container = document.createElement('div')
  container.dataset.element = type
  styleRow(container)
  for (const event of KEPT_EVENTS) container.addEventListener(event, (kept) => kept.stopPropagation())
  if (frameTitle === undefined) {
    target.append(container)
    return { container, remove: () => container.remove() }
  }
  const frame = document.createElement('iframe')
  frame.title = frameTitle
  styleFrame(frame)
  const isLoaded = new Promise((resolve) => frame.addEventListener('load', resolve, { once: true }))
  target.append(frame)
  await isLoaded
  const { body, documentElement } = frame.contentDocument!
  documentElement.lang = document.documentElement.lang || 'en'
  frame.contentDocument!.title = frameTitle
  body.style.margin = '0'
  body.append(container)
  return { container, remove: () => frame.remove() }
}
