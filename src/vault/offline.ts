/** The vault of a run, for operations that need exclusive access to it or that create another one. */
import { formatDate } from '../domain/dates.js'
import type {
  CopyDamage,
  Holder,
  NewSlot,
  OfflineVault,
  VaultFacts,
  Verification,
} from '../framework/ports/vault.js'
import { createRowCheck } from '../storage/barrier/reseal.js'
import { readLockHolder } from '../storage/lock.js'
import { verifyVault } from '../storage/lsm/maintenance/verify.js'
import { readProcessIdentity } from '../storage/process-identity.js'
import { lsmOptions, runUnlocked } from './exclusive.js'
import { changeKeySlots } from './key-slots.js'
import { completeEffects, isStore, requireDirectory, type VaultLocation } from './location.js'
import { reachVault } from './open.js'
import type { ChooseOpener, NewOpener } from './unlock.js'

/** The effects of the run: locations, secrets and progress. */
interface OfflineEffects {
  /** The existing vault. @throws CofferError `vault_missing` */
  find(): VaultLocation
  findNew(): VaultLocation
  /** `passwordFile`: the file with the password of the store at `to`. */
  findTarget(to: string, passwordFile: string | undefined): VaultLocation
  /** The tenant whose log gets the record, by name or id; undefined for the first. */
  tenant(): Promise<string | undefined>
  choose: ChooseOpener
  createOpener(slot: NewSlot): Promise<NewOpener>
  /** `label` names the work. */
  progress(done: number, total: number, label: string): void
}

export function createOfflineVault(effects: OfflineEffects): OfflineVault {
  const { find, findNew, findTarget, tenant, choose, createOpener, progress } = effects
  return {
    verify: () => verifyAtRest(find(), choose),
    restore: async (file) => {
      const location = findNew()
      const { restoreVault } = await import('./copy.js')
      await restoreVault(location, file, choose, (done, total) => progress(done, total, 'Copying'))
      return { ...describe(location), restored_from: file }
    },
    copy: async (to, { passwordFile, skipsDamaged }) => {
      const [source, target] = [find(), findTarget(to, passwordFile)]
      const { copyVault } = await import('./copy.js')
      const { copyDamagedVault } = await import('./copy-damaged.js')
      const damage: CopyDamage = { findings: [], skipped: {} }
      const told = (done: number, total: number) => progress(done, total, 'Copying')
      const { count, digest } = skipsDamaged
        ? await copyDamagedVault(source, target, choose, told, damage)
        : await copyVault(source, target, choose, told)
      const copied = { copied_from: source.directory, rows: count, digest }
      return { ...describe(target), ...copied, ...(skipsDamaged && damage) }
    },
    rekey: async () => {
      const location = find()
      const { rekey } = await import('./rekey.js')
      let resealed = 0
      const { dropped } = await rekey(location, choose, (done, total) => {
        resealed = done
        progress(done, total, 'Encrypting')
      })
      return { ...describe(location), resealed, dropped }
    },
    listSlots: async () => {
      const vault = await reachVault(find(), choose)
      try {
        const { result } = await vault.ask({ operation: 'vault status', input: {}, as: { reveal: false } })
        return (result as VaultFacts).key_slots
      } finally {
        await vault.close()
      }
    },
    changeSlots: async (added, chooseSlots) => {
      const location = find()
      const opener = added === undefined ? undefined : await createOpener(added)
      return changeKeySlots(location, choose, { added: opener, choose: chooseSlots, tenant: await tenant() })
    },
  }
}

function describe({ directory }: VaultLocation): { directory: string } | { store: string } {
  return isStore(directory) ? { store: directory } : { directory }
}

/** undefined if no process has the vault open. Reads only the lock. */
export function readHolder(location: VaultLocation): Holder | undefined {
  requireDirectory(location)
  const { files, directory, pid } = completeEffects(location)
  const held = readLockHolder(files, directory, readProcessIdentity(pid))
  if (held === undefined) return undefined
  const { pid: owner, host, since } = held.holder
  return { pid: owner, host, since: formatDate(since), state: held.state }
}

/** Verifies a vault that is too damaged to be opened. @throws CofferError if its header cannot be opened */
async function verifyAtRest(location: VaultLocation, choose: ChooseOpener): Promise<Verification> {
  requireDirectory(location)
  const effects = completeEffects(location)
  return runUnlocked(effects, choose, async ({ header, keyring }) => {
    const { learn, check } = createRowCheck(keyring)
    const options = lsmOptions(effects, header, keyring)
    await finish(verifyVault(options, learn))
    return finish(verifyVault(options, check))
  })
}

async function finish<T>(steps: AsyncGenerator<unknown, T>): Promise<T> {
  let step = await steps.next()
  while (!step.done) step = await steps.next()
  return step.value
}
