import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { PageSession } from '../control/page-work.js'
import { useEvent, useLive } from './api.js'
import { Button, Choose } from './forms.js'
import { useKept } from './kept.js'
import { linkTo, titleOf } from './route.js'
import { formatSpan } from './text.js'

function isField(target: EventTarget | null): target is HTMLElement {
  return (
    target instanceof HTMLElement &&
    target.matches('input:not([type=checkbox], [type=radio]), select, textarea')
  )
}

/**
 * Keys work only outside of fields and dialogs. Escape works even if a person has turned off keys without Ctrl or Alt.
 */
export function useKeys(keys: Record<string, () => unknown>) {
  useEvent('keydown', (event: KeyboardEvent) => {
    const { key, target, ctrlKey, metaKey, altKey } = event
    const isElsewhere = isField(target) || document.querySelector('dialog[open]') !== null
    const isOff = key !== 'Escape' && localStorage.getItem('coffer-keys') === 'off'
    if (keys[key] === undefined || isElsewhere || isOff || ctrlKey || metaKey || altKey) return
    event.preventDefault()
    keys[key]()
  })
}

/** Escape moves the focus out of a field, and empties a search field. */
export function useEscape() {
  useEvent('keydown', ({ key, target }: KeyboardEvent) => {
    if (key !== 'Escape' || !isField(target) || target.closest('dialog') !== null) return
    if (target instanceof HTMLInputElement && target.type === 'search') {
      target.value = ''
      target.dispatchEvent(new InputEvent('input', { bubbles: true }))
    }
    target.blur()
  })
}

export function Header({ about, children }: { about: Partial<PageSession>; children?: ComponentChildren }) {
  const { header } = about
  const all = {
    Address: <code>{location.origin}</code>,
    Header: header && <code>{header}</code>,
  }
  const facts = Object.entries(all).filter(([, value]) => value)
  return (
    <>
      <Button class="skip" text="Skip to the content" act={() => document.getElementById('main')?.focus()} />
      <header class="top">
        <div class="brand">
          <svg viewBox="0 0 20 20" aria-hidden="true">
            <path d="M2.5 9V7a3.5 3.5 0 0 1 3.5-3.5h8A3.5 3.5 0 0 1 17.5 7v2m-15 0h15m-15 0v7h15V9" />
            <path d="M8.5 8h3v3.5h-3z" fill="currentColor" />
          </svg>
          Coffer
        </div>
        <dl class="facts-line">
          {facts.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
        {children}
      </header>
    </>
  )
}

export function Chips() {
  const { clock, faults = 0 } = useLive().news ?? {}
  const states = {
    real: undefined,
    frozen: 'Clock frozen',
    offset: `Clock ${clock && clock.offset_ms < 0 ? '−' : '+'} ${formatSpan(clock?.offset_ms ?? 0)}`,
  }
  const chips = [
    clock && states[clock.mode],
    faults > 0 && `${faults} ${faults === 1 ? 'fault' : 'faults'} on`,
  ]
  return (
    <div class="row chips push">
      {chips.filter(Boolean).map((text) => (
        <a key={text} class="badge warn" href="#/controls">
          {text}
        </a>
      ))}
    </div>
  )
}

export function Places() {
  const { session, facts, news, place, setPlace } = useLive()
  // The server lists the newest tenant first, but the default tenant is the oldest.
  const tenants = session.tenants
    .toReversed()
    .map(({ id, name }) => [`tenant ${id}`, id === facts?.tenant.id ? facts.tenant.name : name])
  const forks = (news?.forks ?? []).map(({ id, name }) => [`fork ${id}`, `fork ${name ?? id.slice(0, 8)}`])
  const places = [...tenants, ...forks]
  if (places.length < 2) return null
  const [current] = Object.entries(place).map((each) => each.join(' '))
  const choose = (chosen: string) => setPlace(Object.fromEntries([chosen.split(' ')]))
  return (
    <Choose
      label="Tenant or fork"
      of={Object.fromEntries(places)}
      value={current ?? places[0]![0]!}
      choose={choose}
    />
  )
}

export const Tool = ({ name, text, act }: { name: string; text: ComponentChildren; act(): void }) => (
  <Button class="quiet" aria-label={name} title={name} text={text} act={act} />
)

const THEMES = ['system', 'light', 'dark']

export function Theme() {
  const [theme, setTheme] = useKept('theme', 'system')
  useEffect(() => {
    document.documentElement.dataset.theme = theme
  }, [theme])
  const turn = () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!)
  const picture = (
    <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
      <circle cx="8" cy="8" r="6" fill="none" stroke="currentColor" stroke-width="1.5" />
      <path d="M8 2a6 6 0 0 1 0 12z" fill="currentColor" />
    </svg>
  )
  return <Tool name={`Theme: ${theme}`} text={picture} act={turn} />
}

export function Navigation({ names, current }: { names: string[]; current: string }) {
  const { requests, facts } = useLive()
  const counts: Record<string, number | undefined> = { ...facts?.counts, requests: requests?.length }
  const seen = useRef<typeof counts>({})
  for (const [name, count] of Object.entries(counts))
    if (name === current || seen.current[name] === undefined) seen.current[name] = count
  const nav = useRef<HTMLElement>(null)
  useEffect(() => {
    nav.current!.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
  }, [current])
  return (
    <nav class="nav" aria-label="Screens" ref={nav}>
      <ul>
        {names.map((name) => {
          const isNew = (counts[name] ?? 0) > (seen.current[name] ?? 0)
          return (
            <li key={name}>
              <a href={linkTo(name)} aria-current={name === current ? 'page' : undefined}>
                {titleOf(name)}
                {counts[name] !== undefined && (
                  <span class={`count ${isNew ? 'new' : ''}`}>
                    {counts[name]}
                    {isNew && <span class="only-screen-reader"> new</span>}
                  </span>
                )}
              </a>
            </li>
          )
        })}
      </ul>
    </nav>
  )
}
