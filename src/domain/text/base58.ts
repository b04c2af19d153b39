export const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'
export const BASE58_RULE = 'base58 (digits and letters without 0, O, I and l)'
/** Each division yields five digits. A limb has 16 bits, so a double holds each dividend exactly. */
const GROUP_DIGITS = 5
const GROUP = 58 ** GROUP_DIGITS

/** Uses Bitcoin's alphabet. Adds `1` at the start until the text has `least` characters. */
export function base58(bytes: Uint8Array, least = 0): string {
  const limbs = toLimbs(bytes)
  let digits = ''
  for (let first = 0; first < limbs.length; ) {
    let group = 0
    for (let at = first; at < limbs.length; at++) {
      const dividend = group * 0x10000 + limbs[at]!
      limbs[at] = Math.floor(dividend / GROUP)
      group = dividend % GROUP
    }
    while (limbs[first] === 0) first++
    for (let place = 0; place < GROUP_DIGITS; place++) {
      digits = BASE58[group % 58] + digits
      group = Math.floor(group / 58)
    }
  }
  const zeros = bytes.findIndex((byte) => byte !== 0)
  const leading = '1'.repeat(zeros < 0 ? bytes.length : zeros)
  return (leading + digits.replace(/^1+/, '')).padStart(least, '1')
}

/** Returns limbs of 16 bits, the highest first. */
function toLimbs(bytes: Uint8Array): Float64Array {
  const count = Math.ceil(bytes.length / 2)
  return Float64Array.from({ length: count }, (_, at) => {
    const low = bytes.length - 1 - 2 * (count - 1 - at)
    return (bytes[low - 1] ?? 0) * 0x100 + bytes[low]!
  })
}

export function randomKey(random: { bytes(count: number): Uint8Array }, prefix = ''): string {
  return prefix + base58(random.bytes(16), 22)
}

export function isKey(text: string, prefix = ''): boolean {
  return text.startsWith(prefix) && /^[1-9A-HJ-NP-Za-km-z]{22}$/.test(text.slice(prefix.length))
}
