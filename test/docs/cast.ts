/** Draws commands and their output as an animated SVG. The commands appear one after another. */
import { withoutStyle } from '../cli/fake-process.js'
import type { Printed } from './document.js'

/** Sizes in px. */
const [COLUMN, ROW, MARGIN, TITLE] = [8.43, 20, 18, 30]
const [COMMAND_MS, OUTPUT_MS] = [1200, 500]
/** For each code of an escape sequence, the start and the end of its style. */
const STYLES: Record<string, string> = {
  1: 'font-weight:bold',
  2: 'opacity:.6',
  31: 'fill:#ff7b72',
  32: 'fill:#7ee787',
  33: 'fill:#e3b341',
  34: 'fill:#79c0ff',
  36: 'fill:#76e3ea',
}
const ENDS: Record<string, RegExp> = { 0: /^/, 22: /^(font|opacity)/, 39: /^fill/ }

const escapeXml = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** Converts a line with escape sequences for bold, dim and colours to SVG spans. */
function drawLine(line: string): string {
  let style: string[] = []
  let drawn = ''
  for (const [at, part] of line.split(/\u001b\[([\d;]*)m/).entries()) {
    const attribute = style.length > 0 ? ` style="${style.join(';')}"` : ''
    if (at % 2 === 0 && part !== '') drawn += `<tspan${attribute}>${escapeXml(part)}</tspan>`
    if (at % 2 === 1)
      for (const code of part.split(';')) {
        style = style.filter((each) => !ENDS[Number(code)]?.test(each))
        if (STYLES[code] !== undefined) style.push(STYLES[code])
      }
  }
  return drawn
}

export function drawCast(printed: readonly Printed[]): string {
  let row = 0
  let at = 0
  const groups = printed.flatMap(({ block, text }) => {
    const command = block.code
      .trim()
      .split('\n')
      .map((line) => `\u001b[32m${/^\s|^\|/.test(line) ? '  ' : '$ '}\u001b[39m${line}`)
    return [
      { lines: command, ms: COMMAND_MS },
      ...(text.trim() === '' ? [] : [{ lines: text.trimEnd().split('\n'), ms: OUTPUT_MS }]),
    ]
  })
  const drawn = groups.map(({ lines, ms }) => {
    const rows = lines.map((line) => {
      row++
      return `<text x="${MARGIN}" y="${TITLE + row * ROW}">${drawLine(line)}</text>`
    })
    const group = `<g style="animation-delay:${at}ms">\n${rows.join('\n')}\n</g>`
    at += ms
    return group
  })
  const columns = Math.max(...groups.flatMap(({ lines }) => lines.map((line) => withoutStyle(line).length)))
  const [width, height] = [Math.ceil(columns * COLUMN + 2 * MARGIN), TITLE + (row + 1) * ROW]
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="Commands of coffer and their output">
<style>
text { font: 14px/1 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #e6edf3; white-space: pre }
g { opacity: 0; animation: show 1ms forwards }
@keyframes show { to { opacity: 1 } }
@media (prefers-reduced-motion: reduce) { g { opacity: 1; animation: none } }
</style>
<rect width="${width}" height="${height}" rx="8" fill="#0d1117"/>
<circle cx="20" cy="17" r="5" fill="#ff5f57"/><circle cx="38" cy="17" r="5" fill="#febc2e"/><circle cx="56" cy="17" r="5" fill="#28c840"/>
${drawn.join('\n')}
</svg>
`
}
