/** Sets styles with a script, because the content security policy of a page may forbid style sheets. */

const OF_TEXT = [
  'backgroundColor',
  'color',
  'fontFamily',
  'fontSize',
  'fontStyle',
  'fontVariant',
  'fontWeight',
  'letterSpacing',
  'lineHeight',
  'padding',
  'textAlign',
  'textDecoration',
  'textShadow',
  'textTransform',
] as const

const PLAIN = { width: '100%', minWidth: '0', boxSizing: 'border-box', border: '0', font: 'inherit' }

export function styleInput({ style }: HTMLInputElement, base: Record<string, unknown>): void {
  Object.assign(style, PLAIN, { background: 'transparent', color: 'inherit' })
  for (const name of OF_TEXT) {
    const value = base[name]
    if (typeof value === 'string' || typeof value === 'number') style[name] = String(value)
  }
}

export function styleRow({ style }: HTMLElement): void {
  Object.assign(style, { display: 'flex', gap: '8px' })
}

export function styleFrame({ style }: HTMLIFrameElement): void {
  Object.assign(style, { width: '100%', height: '2em', border: '0', display: 'block' })
}
