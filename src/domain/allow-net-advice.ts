/** Precedes the option in a message that refuses an address. The dashboard shows the option as code to copy. */
const ADVICE = ' To allow it, start Coffer with '

export const adviseAllowNet = (entry: string) => `${ADVICE}--allow-net ${entry}`

export function divideRefusal(text: string): { reason: string; option?: string } {
  const at = text.lastIndexOf(ADVICE)
  return at < 0 ? { reason: text } : { reason: text.slice(0, at), option: text.slice(at + ADVICE.length) }
}
