/** Escaping of text in HTML. */

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** `text` escaped for the content of an element or a quoted attribute. */
export function encodeHtml(text: unknown): string {
  return String(text).replaceAll(/[&<>"']/g, (character) => ENTITIES[character]!)
}
