/** Opens vaults in memory with a control plane. */
import type { RandomSource } from '../crypto/ports.js'
import { drawKey } from '../domain/text/base58.js'
import { type EphemeralOptions, openEphemeral } from '../vault/open.js'
import { seedVault } from '../vault/sample-applications.js'
import { TestClock } from './clock.js'
import { ControlState } from './control-state.js'

/** A vault in memory, with the contents of `seed`, to which it can be reset. */
export async function openControlled(options: EphemeralOptions, seed: unknown) {
  const clock = new TestClock(options.clock ?? Date.now)
  const memory = await openEphemeral({ ...options, clock: clock.now })
  try {
    const applications = await seedVault(memory.app, seed)
    const names = new Map(Object.entries(applications).map(([name, { id }]) => [id, name]))
    const plane = await new ControlState(memory.app, { memory, clock, names }).begin()
    memory.app.control = plane
    return { plane, applications }
  } catch (error) {
    await memory.app.close()
    throw error
  }
}

/** A key of a control plane. */
export function drawControlKey(random: RandomSource): string {
  return drawKey(random, 'ctl_')
}
