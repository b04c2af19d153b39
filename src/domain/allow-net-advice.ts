/** The end of a refusal of an address: which option permits the address. The dashboard shows the option as code to copy. */
const ADVICE = ' To allow it, start Coffer with '

/** `entry`: the entry of `--allow-net` that would permit the address. */
export const adviseAllowNet = (entry: string) => `${ADVICE}--allow-net ${entry}`

/** Divides a refusal into its reason and the option that permits the address, if the refusal names one. */
export function divideRefusal(text: string): { reason: string; option?: string } {
  const at = text.lastIndexOf(ADVICE)
  return at < 0 ? { reason: text } : { reason: text.slice(0, at), option: text.slice(at + ADVICE.length) }
}
