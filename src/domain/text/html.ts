const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Escapes text for the content of an element or a quoted attribute. */
export function encodeHtml(text: unknown): string {
  return String(text).replaceAll(/[&<>"']/g, (character) => ENTITIES[character]!)
}
