/** Text inside HTML. It knows nothing of what is written. */

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** `text` as it stands in an element or a quoted attribute. */
export function encodeHtml(text: unknown): string {
  return String(text).replaceAll(/[&<>"']/g, (character) => ENTITIES[character]!)
}
