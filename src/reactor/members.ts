/**
 * The children that run reactor code: who may have one, which one, how long they stay warm, and that none is left. A
 * child serves one version of one reactor with one application's rights, one invocation at a time.
 */
import type { Guest, StartGuest } from './child.js'
import type { Invocation, Powers } from './invocation.js'
import { mayHaveAnother, type PoolSettings } from './pool-settings.js'

export interface MemberPowers extends Powers {
  startGuest: StartGuest
}

/** What a child is wanted for. */
export interface Purpose {
  caller: string
  /** Tenant and reactor. */
  key: string
  /** The code, its configuration and its application: none of them is run where another of them was. */
  version: string
}

export interface Member {
  readonly guest: Guest
  /** What it runs or ran last; undefined while blank. */
  purpose: Purpose | undefined
  runs: number
  busyMs: number
  invocation: Invocation | undefined
  isStarting: boolean
  /** Another version came after what it runs. */
  isOutdated: boolean
  isBusy: boolean
  /** It answered and will soon be idle or gone: worth waiting for. */
  isResting: boolean
  stopWaiting: () => void
}

export class Members {
  #settings: PoolSettings
  readonly #powers: MemberPowers
  readonly #all = new Set<Member>()
  /** Told of a child that started, or ended by itself. */
  readonly #changed: () => void
  #isClosed = false

  constructor(settings: PoolSettings, powers: MemberPowers, changed: () => void) {
    this.#settings = settings
    this.#powers = powers
    this.#changed = changed
  }

  busyFor(caller: string): number {
    return this.#busy().filter(({ purpose }) => purpose?.caller === caller).length
  }

  /** `waiting`: everybody who waits for a child. */
  mayHaveAnother(caller: string, waiting: Iterable<string>): boolean {
    const busy = this.#busy()
    const callers = new Set([...waiting, ...busy.map(({ purpose }) => purpose?.caller)]).size
    return mayHaveAnother({ total: busy.length, own: this.busyFor(caller), callers }, this.#settings)
  }

  /** A child that may run this now; undefined for none. Contract: the caller may have another. */
  choose({ key, version, caller }: Purpose): Member | undefined {
    for (const member of [...this.#all]) {
      if (member.purpose?.key !== key || member.purpose.version === version) continue
      member.isOutdated = true
      if (!member.isBusy) this.discard(member)
    }
    const idle = this.#idle()
    const own = idle.find(({ purpose }) => purpose?.key === key)
    if (own !== undefined) return own
    const same = [...this.#all].filter(({ purpose }) => purpose?.key === key)
    if (same.length >= this.#settings.mostPerReactor) return undefined
    if (same.some(({ purpose, isResting }) => isResting && purpose?.version === version)) return undefined
    const blank = idle.find(({ purpose }) => purpose === undefined)
    if (blank !== undefined) return blank
    // Starting takes more of the processors than most runs do: a crowd of one caller's would be in everybody's way.
    if (this.#busy().some((member) => member.isStarting && member.purpose?.caller === caller))
      return undefined
    const { mostChildren, reservedChildren } = this.#settings
    if (this.#all.size >= mostChildren + reservedChildren)
      this.discard(idle.find(({ purpose }) => purpose?.caller === caller) ?? idle[0]!)
    return this.#start()
  }

  /** Long runs of callers who have several under way let those of `caller` go first, from now on. */
  makeWayFor(caller: string): void {
    for (const { guest, purpose, invocation } of this.#busy())
      if (invocation?.isLong && purpose!.caller !== caller && this.busyFor(purpose!.caller) > 1)
        guest.giveWay()
  }

  keepWarm(member: Member): void {
    member.isBusy = false
    member.stopWaiting = this.#powers.clock.after(this.#settings.warmMs, () => this.discard(member))
  }

  keepSpares(): void {
    if (this.#isClosed) return
    const blank = this.#idle().filter(({ purpose }) => purpose === undefined).length
    for (let count = blank; count < this.#settings.spares; count++) {
      if (this.#all.size >= this.#settings.mostChildren) return
      this.#start()
    }
  }

  discard(member: Member): void {
    member.stopWaiting()
    member.guest.kill()
    this.#all.delete(member)
  }

  /** Ends whoever has nothing to do; nobody is started ahead of need any more. */
  retire(): void {
    this.#settings = { ...this.#settings, spares: 0 }
    for (const member of this.#idle()) this.discard(member)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const all = [...this.#all]
    for (const member of all) {
      member.invocation?.breach('closed')
      this.discard(member)
    }
    await Promise.all(all.map(({ guest }) => guest.ended))
  }

  #busy(): Member[] {
    return [...this.#all].filter(({ isBusy }) => isBusy)
  }

  #idle(): Member[] {
    return [...this.#all].filter(({ isBusy }) => !isBusy)
  }

  #start(): Member {
    const member: Member = {
      guest: this.#powers.startGuest(),
      purpose: undefined,
      runs: 0,
      busyMs: 0,
      invocation: undefined,
      isStarting: true,
      isOutdated: false,
      isBusy: false,
      isResting: false,
      stopWaiting: () => undefined,
    }
    this.#all.add(member)
    void member.guest.ready.then(() => {
      member.isStarting = false
      this.#changed()
    })
    void member.guest.ended.then(() => {
      member.stopWaiting()
      this.#all.delete(member)
      this.#changed()
    })
    return member
  }
}
