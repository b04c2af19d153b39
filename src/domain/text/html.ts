const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export function encodeHtml(text: unknown): string {
  return String(text).replaceAll(/[&<>"']/g, (character) => ENTITIES[character]!)
}
