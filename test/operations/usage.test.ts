/** The usage report is exact whatever happens to tokens, although most creations write nothing down for it. */
import fc from 'fast-check'
import t from 'tap'
import { openTestVault } from '../support/test-vault.js'

const HOUR_MS = 60 * 60 * 1000
const DAY_MS = 24 * HOUR_MS
const DATA: Record<string, unknown> = { token: 'text', employer_id_number: '12-3456789' }

interface Report {
  token_report: {
    metrics_by_type: Record<string, { count: number; last_created_at: string }>
    monthly_active_tokens: number
  }
}

/** What the report must say, kept as plainly as its sentences. */
class Model {
  readonly #active = new Set<string>()
  readonly #last = new Map<string, number>()
  readonly living = new Map<string, { type: string; expires: number | undefined }>()

  use(id: string, now: number): void {
    this.#active.add(`${month(now)}/${id}`)
  }

  create(id: string, type: string, now: number, expires: number | undefined): void {
    this.living.set(id, { type, expires })
    this.#last.set(type, now)
    this.use(id, now)
  }

  passTo(now: number): void {
    for (const [id, { expires }] of this.living)
      if (expires !== undefined && expires <= now) this.living.delete(id)
  }

  report(now: number): Report['token_report'] {
    const types = [...this.#last].map(([type, at]) => {
      const count = [...this.living.values()].filter((token) => token.type === type).length
      return [type, { count, last_created_at: new Date(at).toISOString().replace('Z', '+00:00') }]
    })
    return {
      metrics_by_type: Object.fromEntries(types),
      monthly_active_tokens: [...this.#active].filter((each) => each.startsWith(month(now))).length,
    }
  }
}

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never

const month = (at: number) => new Date(at).toISOString().slice(0, 7)

const id = fc.constantFrom('one', 'two', 'three')
const hours = fc.constantFrom(undefined, undefined, 2, 1000)
const change = fc.record({
  do: fc.constantFrom('expire' as const, 'get' as const, 'delete' as const, 'update' as const),
  id,
  hours,
})
const step = fc.oneof(
  change,
  fc.record({ do: fc.constant('create' as const), id, type: fc.constantFrom(...Object.keys(DATA)), hours }),
  fc.record({ do: fc.constant('drawn' as const), type: fc.constantFrom(...Object.keys(DATA)), hours }),
  fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(1, HOUR_MS, DAY_MS, 12 * DAY_MS) }),
  fc.record({ do: fc.constantFrom('list' as const, 'sweep' as const) }),
)

const sweeps = Array.from({ length: 4 }, (): Step[] => [{ do: 'wait', ms: HOUR_MS }, { do: 'sweep' }])
const AGAIN: Step[] = [
  { do: 'create', id: 'one', type: 'token', hours: 2 },
  ...sweeps.flat(),
  { do: 'create', id: 'two', type: 'token', hours: 1000 },
  { do: 'create', id: 'one', type: 'token', hours: 2 },
  { do: 'wait', ms: 3 * HOUR_MS },
]

t.test('the report says what a plain account of everything says', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      const { app, ask, clock } = await openTestVault()
      const model = new Model()
      const expiry = (after: number | undefined) =>
        after === undefined ? undefined : clock.now + after * HOUR_MS
      const create = async (input: { id?: string; type: string }, expires: number | undefined) => {
        const expires_at = expires === undefined ? {} : { expires_at: new Date(expires).toISOString() }
        const made = await ask('token create', { ...input, data: DATA[input.type], ...expires_at })
        model.create((made as { id: string }).id, input.type, clock.now, expires)
      }
      const change = async (each: Change, known: { expires: number | undefined }) => {
        const { id } = each
        if (each.do === 'get') {
          await ask('token get', { id })
          model.use(id, clock.now)
        } else if (each.do === 'delete') {
          await ask('token delete', { id })
          model.living.delete(id)
        } else if (each.do === 'update') await ask('token update', { id, metadata: { a: 'b' } })
        else {
          known.expires = expiry(each.hours)
          const expires_at = known.expires === undefined ? null : new Date(known.expires).toISOString()
          await ask('token update', { id, expires_at })
        }
      }
      for (const each of steps) {
        // Creations of one second have no order.
        clock.now += 1000
        model.passTo(clock.now)
        const known = 'id' in each ? model.living.get(each.id) : undefined
        switch (each.do) {
          case 'wait':
            clock.now += each.ms
            break
          case 'sweep':
            await app.sweep()
            break
          case 'list':
            await ask('token list', { size: 100 })
            for (const listed of model.living.keys()) model.use(listed, clock.now)
            break
          case 'drawn':
            await create({ type: each.type }, expiry(each.hours))
            break
          case 'create': {
            const { id, type } = each
            // What expired by a clock that has just jumped keeps its id for a while.
            if (known === undefined)
              await create({ id, type }, expiry(each.hours)).catch((error) =>
                t.match(error, { code: 'conflict' }),
              )
            else await t.rejects(ask('token create', { id, type, data: DATA[type] }))
            break
          }
          default:
            if (known !== undefined) await change(each, known)
        }
        model.passTo(clock.now)
        const { token_report } = await ask('tenant usage')
        const { included_monthly_active_tokens: _, ...told } = token_report as Report['token_report'] & {
          included_monthly_active_tokens: number
        }
        t.strictSame(told, model.report(clock.now), JSON.stringify(each))
      }
    }),
    // An id that is used again, with a token made in between that still exists.
    { numRuns: 15, examples: [[AGAIN]] },
  )
})
