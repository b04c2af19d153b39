/** SQL expressions for the keys of a row, which are 8 bytes each, one after another. */

const KEY_BYTES = 8

/** Returns SQL that yields the numbers `n` of a row's keys, from `first` on. {@link keyAt} uses `n`. */
export function eachKey(keys: string, first = 1): string {
  return `generate_series(${first}, octet_length(${keys}) / ${KEY_BYTES}) as n`
}

export function keyAt(keys: string): string {
  return `substring(${keys} from n * ${KEY_BYTES} - ${KEY_BYTES - 1} for ${KEY_BYTES})`
}
