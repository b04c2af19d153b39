import { useState } from 'preact/hooks'

/** A state in local storage, which all tabs of this server share. `usual`: the value if nothing is stored. */
export function useKept(name: string, usual: string) {
  const [value, setValue] = useState(() => localStorage.getItem(`coffer-${name}`) ?? usual)
  const keep = (next: string) => {
    localStorage.setItem(`coffer-${name}`, next)
    setValue(next)
  }
  return [value, keep] as const
}
