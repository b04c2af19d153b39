const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
export const BASE58_RULE = 'base58 (digits and letters without 0, O, I and l)'
const GROUP_DIGITS = 5
const GROUP = 58n ** BigInt(GROUP_DIGITS)

/**
 * Uses Bitcoin's alphabet. Pads with `1` to `least` characters: 43 for 32 bytes (43 or 44 characters), 22 for
 * 16.
 */
export function base58(bytes: Uint8Array, least = 0): string {
  let digits = ''
  for (let left = BigInt(`0x0${Buffer.from(bytes).toString('hex')}`); left > 0n; left /= GROUP) {
    let group = Number(left % GROUP)
    for (let place = 0; place < GROUP_DIGITS; place++) {
      digits = BASE58[group % 58] + digits
      group = Math.floor(group / 58)
    }
  }
  const zeros = bytes.findIndex((byte) => byte !== 0)
  const leading = '1'.repeat(zeros < 0 ? bytes.length : zeros)
  return (leading + digits.replace(/^1+/, '')).padStart(least, '1')
}

export function randomKey(random: { bytes(count: number): Uint8Array }, prefix = ''): string {
  return prefix + base58(random.bytes(16), 22)
}

/** Whether the text has the format of {@link randomKey}. Checked before a text is hashed. */
export function isKey(text: string, prefix = ''): boolean {
  return text.startsWith(prefix) && /^[1-9A-HJ-NP-Za-km-z]{22}$/.test(text.slice(prefix.length))
}
