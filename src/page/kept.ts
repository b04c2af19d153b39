import { useState } from 'preact/hooks'

/**
 * A state that the browser keeps, in all tabs of this server. `usual`: the value if the browser has not stored a
 * value yet.
 */
export function useKept(name: string, usual: string) {
  const [value, setValue] = useState(() => localStorage.getItem(`coffer-${name}`) ?? usual)
  const keep = (next: string) => {
    localStorage.setItem(`coffer-${name}`, next)
    setValue(next)
  }
  return [value, keep] as const
}
