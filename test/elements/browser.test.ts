/** The card fields in Chromium, with unmodified packages. The browser can reach no host except localhost. */
import type { Browser, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { installElements, routeElements } from '../../src/playwright.js'
import { checkPage, launchChromium, needsChromium } from '../http/chromium.js'
import type { Json } from '../http/threeds-shop.js'
import { bundleKit, type Coffer, startCoffer, startShop, type Visit, visit } from './shop.js'

const NUMBER = '4242424242424242'

let browser: Browser | undefined
let coffer: Coffer
let shop: string
t.before(async () => {
  if ('skip' in needsChromium) return
  const [kit, opened, started] = await Promise.all([bundleKit(), launchChromium(), startCoffer(t)])
  browser = opened
  coffer = started
  shop = await startShop(t, coffer, kit)
})
t.teardown(() => browser?.close())

type Lab = Visit & {
  /** Runs a program in the page. `bt` is the result of `await basistheory(key)`. */
  run<T>(program: (given: { bt: Json; scope: Json }) => T): Promise<T>
}

const open = (t: Test, prepare?: (tab: Page) => Promise<void>) => visit(t, browser!, shop, prepare)

/** Opens a page with the fields of Coffer and the package `@basis-theory/web-elements`. */
async function openLab(t: Test, options: { frame?: boolean } = {}): Promise<Lab> {
  const opened = await open(t, (tab) => installElements(tab, coffer.server, options))
  const { tab } = opened
  await tab.evaluate(async (key) => {
    const scope = globalThis as Json
    scope.bt = await scope.kit.basistheory(key)
    scope.events = []
    /** Creates and mounts a field, and records the events of the field. */
    scope.add = async (type: string, place: string, options: object = {}) => {
      const element = scope.bt.createElement(type, { targetId: place.slice(1), ...options })
      for (const name of ['ready', 'change', 'focus', 'blur', 'keydown'])
        element.on(name, (event: Json) => scope.events.push(event))
      await element.mount(place)
      return element
    }
    /** Returns the error of a call that must fail. */
    scope.refusal = (call: Promise<Json>) =>
      call.then(
        () => 'no error',
        ({ name, message, status, data, details, validation }: Json) => ({
          ...{ name, message, status, data, details, validation },
        }),
      )
    scope.show = (key: string) => scope.kit.showCheckout(key)
  }, coffer.keys.public)
  const run = (program: (given: { bt: Json; scope: Json }) => Json) =>
    tab.evaluate(`(${program})({ bt: globalThis.bt, scope: globalThis })`) as Json
  return { ...opened, run }
}

/** Returns the events of a type that the page has received. */
const eventsOf = async ({ run }: Lab, type: string): Promise<Json[]> =>
  (await run(({ scope }) => scope.events)).filter((event: Json) => event.type === type)

/** Returns a token with its data in plaintext. */
async function stored(id: string): Promise<Json> {
  return coffer.server.as(coffer.keys.private).tokens.get({ id, reveal: true } as never)
}

async function fillCard(tab: Page, number: string, date = '12/30', code = '123'): Promise<void> {
  await tab.getByLabel('Card Number').fill(number)
  await tab.getByLabel('Expiration Date').fill(date)
  await tab.getByLabel('CVC').fill(code)
}

t.test(
  'a React checkout can collect a card, create a token, complete the challenge and charge the card',
  needsChromium,
  async (t) => {
    const { tab, strangers, asked, printed } = await open(t, (tab) => installElements(tab, coffer.server))
    await tab.evaluate((key) => (globalThis as Json).kit.showCheckout(key), coffer.keys.public)
    await tab.getByLabel('Card Number').waitFor()
    const ofPage = [`${shop}/`, `${shop}/kit.js`]
    t.strictSame(asked, ofPage, 'fields send nothing before the form is submitted')
    await fillCard(tab, '4000020000000000')
    await tab.getByRole('button', { name: 'Pay' }).click()
    const bank = tab.frameLocator('#challengeIframe').frameLocator('iframe')
    await bank.getByLabel('Passcode').fill('1234')
    await bank.getByRole('button', { name: 'Submit' }).click()
    await tab.locator('#result').filter({ hasText: 'paid' }).waitFor()
    t.equal(await tab.locator('#brand').textContent(), 'visa')
    const [charge] = coffer.processor.received
    t.match(JSON.parse(charge!.body), { number: '4000020000000000', amount: 1250 })
    t.strictSame(strangers, [])
    t.notMatch([...asked, ...printed].join('\n'), '4000020000000000')
  },
)

t.test(
  'the frames of the bank work on a page at a public address if the browser permits access to the local network',
  needsChromium,
  async (t) => {
    const { tab, strangers } = await open(t, async (tab) => {
      await installElements(tab, coffer.server)
      await tab.context().grantPermissions(['local-network-access'])
      await tab.route('https://shop.test/**', async (route) => {
        const { pathname } = new URL(route.request().url())
        await route.fulfill({ response: await route.fetch({ url: shop + pathname }) })
      })
    })
    await tab.goto('https://shop.test/')
    await tab.evaluate((key) => (globalThis as Json).kit.showCheckout(key), coffer.keys.public)
    await fillCard(tab, '4000020000000000')
    await tab.getByRole('button', { name: 'Pay' }).click()
    const bank = tab.frameLocator('#challengeIframe').frameLocator('iframe')
    await bank.getByLabel('Passcode').fill('1234', { timeout: 10_000 })
    await bank.getByRole('button', { name: 'Submit' }).click()
    await tab.locator('#result').filter({ hasText: 'paid' }).waitFor()
    t.strictSame(strangers, [])
  },
)

t.test(
  'requests of hosted fields reach Coffer, from frames of other origins too',
  needsChromium,
  async (t) => {
    const hosted = `<script>
    const ask = async (url) => {
      const body = JSON.stringify({ type: 'card', data: { number: '${NUMBER}' } })
      const headers = { 'BT-API-KEY': location.hash.slice(1), 'BT-DEVICE-INFO': 'e30=', 'content-type': 'application/json' }
      const answer = await fetch(url, { method: 'POST', headers, body })
      return { status: answer.status, trace: answer.headers.get('bt-trace-id'), ...await answer.json() }
    }
    Promise.all(['/api/tokens', 'https://api.test.basistheory.com/tokens'].map(ask))
      .then((answers) => parent.postMessage(answers, '*'), (error) => parent.postMessage(String(error), '*'))
  </script>`
    const { tab, strangers } = await open(t, async (tab) => {
      // The vendor's page is replaced by this page.
      await tab.route('https://js.basistheory.com/web-elements/**', (route) =>
        route.fulfill({ contentType: 'text/html', body: hosted }),
      )
      await routeElements(tab, coffer.server)
    })
    const answers: Json[] = await tab.evaluate((key) => {
      const { document, addEventListener } = globalThis as Json
      const frame = document.createElement('iframe')
      frame.src = `https://js.basistheory.com/web-elements/2.17.0/hosted-elements/index.html#${key}`
      const answered = new Promise((resolve) =>
        addEventListener('message', ({ data }: Json) => resolve(data)),
      )
      document.body.append(frame)
      return answered as never
    }, coffer.keys.public)
    t.match(answers, [
      { status: 201, trace: String },
      { status: 201, trace: String },
    ])
    for (const { id } of answers) t.match((await stored(id)).data, { number: NUMBER })
    t.strictSame(strangers, [])
  },
)

t.test(
  'a page creates a token from three React fields, and sends nothing while a field is empty',
  needsChromium,
  async (t) => {
    const lab = await openLab(t)
    const { tab, strangers } = lab
    await tab.evaluate((key) => (globalThis as Json).show(key), coffer.keys.public)
    await tab.getByRole('button', { name: 'Pay' }).click()
    await tab.locator('#result').filter({ hasText: 'BasisTheoryValidationError' }).waitFor()
    t.notOk(
      lab.asked.some((url) => url.includes('/tokens')),
      'nothing is sent while a field is empty',
    )
    await fillCard(tab, '4264281511112228', '1/2031', '987')
    const [answer] = await Promise.all([
      // The page sends its request to the address that it uses in production. Coffer answers the request.
      tab.waitForResponse('https://js.basistheory.com/api/tokens'),
      tab.getByRole('button', { name: 'Pay' }).click(),
    ])
    t.match((await stored((await answer.json()).id)).data, {
      number: '4264281511112228',
      expiration_month: 1,
      expiration_year: 2031,
      cvc: '987',
    })
    await tab.locator('#result').filter({ hasText: 'failed' }).waitFor()
    t.strictSame(strangers, [])
  },
)

t.test('basis-theory-js can load the script of the card fields from Coffer', needsChromium, async (t) => {
  const { tab, strangers } = await open(t)
  const create = async ([key, url]: readonly [string, string]) => {
    const scope = globalThis as Json
    const elementsClientUrl = `${url}/elements/client/index.js`
    scope.bt = new scope.kit.BasisTheory()
    await scope.bt.init(key, { elements: true, elementsClientUrl, apiBaseUrl: url })
    scope.card = scope.bt.createElement('card')
    await scope.card.mount('#a')
  }
  await tab.evaluate(create, [coffer.keys.public, coffer.server.url] as const)
  await fillCard(tab, '378282246310005', '12/30', '1234')
  const token: Json = await tab.evaluate(() =>
    (globalThis as Json).bt.tokens.create({
      type: 'card',
      data: (globalThis as Json).card,
      searchIndexes: ['x'],
    }),
  )
  t.match(token, { id: String, tenantId: String, searchIndexes: ['x'] })
  const card = { number: '378282246310005', expiration_month: 12, expiration_year: 2030, cvc: '1234' }
  t.match((await stored(token.id)).data, card)
  t.strictSame(strangers, [])
})

t.test(
  'a script tag for the card fields sets the global variables of both packages',
  needsChromium,
  async (t) => {
    const { tab, strangers } = await open(t)
    await tab.addScriptTag({ url: `${coffer.server.url}/web-elements/2.17.0/client/index.js` })
    const names = await tab.evaluate(
      async ([key]) => {
        const scope = globalThis as Json
        const first = scope.BasisTheoryElements
        const bt = await scope.basistheory(key)
        const old = await scope.BasisTheory.init(key, { elements: true })
        const refused = (call: () => unknown) => {
          try {
            return String(call())
          } catch (error) {
            return (error as Error).message
          }
        }
        const { element } = { element: old.createElement('text', { targetId: 'a' }) }
        await element.mount('#a')
        return {
          isSame: first === scope.BasisTheoryElements && scope.BasisTheory === old,
          has: bt.hasElement({ a: [element] }) && !bt.hasElement({ a: [{}] }),
          logs: refused(() => old.logs),
          version3: refused(() => scope.BasisTheory(key)),
          noKey: await scope.basistheory('').catch((error: Error) => error.message),
          json: JSON.stringify(element),
        }
      },
      [coffer.keys.public],
    )
    t.match(names, {
      isSame: true,
      has: true,
      logs: /BasisTheory\.logs/,
      version3: /version 3 of Elements/,
      noKey: 'API key is required',
      json: '{}',
    })
    t.strictSame(strangers, [])
  },
)

t.test(
  'the fields work on a page that has a content security policy and loads the script with an integrity digest',
  needsChromium,
  async (t) => {
    const address = 'https://js.basistheory.com/web-elements/latest/index.js'
    const policy = `default-src 'none'; script-src https://js.basistheory.com; connect-src https://js.basistheory.com`
    const { tab, strangers, printed } = await open(t, async (tab) => {
      await installElements(tab, coffer.server)
      await tab.route('https://shop.test/', (route) =>
        route.fulfill({
          contentType: 'text/html',
          headers: { 'content-security-policy': policy },
          body: `<div id="a"></div><script src="${address}" integrity="sha384-${'A'.repeat(64)}" crossorigin></script>`,
        }),
      )
    })
    await tab.goto('https://shop.test/')
    await tab.evaluate(async (key) => {
      const scope = globalThis as Json
      scope.bt = await scope.basistheory(key)
      scope.field = scope.bt.createElement('cardNumber', { targetId: 'a' })
      await scope.field.mount('#a')
    }, coffer.keys.public)
    await tab.getByLabel('Card Number').fill(NUMBER)
    const token: Json = await tab.evaluate(() => {
      const { bt, field } = globalThis as Json
      return bt.tokens.create({ type: 'card_number', data: field })
    })
    t.equal((await stored(token.id)).data, NUMBER)
    t.match(printed.join('\n'), /valid digest in the 'integrity' attribute/)
    t.notMatch(printed.join('\n'), /Content Security Policy/, 'the fields set no style that a policy forbids')
    t.strictSame(strangers, [])
  },
)

t.test(
  'a page can pass a card field in place of a card to tokens, tokenize and token intents',
  needsChromium,
  async (t) => {
    const lab = await openLab(t)
    await lab.run(async ({ scope }) => {
      scope.card = await scope.add('card', '#a')
    })
    await fillCard(lab.tab, NUMBER, '03/31', '321')
    const made = await lab.run(async ({ bt, scope: { card } }) => ({
      token: await bt.tokens.create({ type: 'card', data: card, metadata: { orderId: 'x' } }),
      both: await bt.tokenize({ first: { type: 'card', data: card }, other: 'plain' }),
      intent: await bt.tokenIntents.create({ type: 'card', data: card }),
      session: await bt.sessions.create(),
    }))
    const card = { number: NUMBER, expiration_month: 3, expiration_year: 2031, cvc: '321' }
    t.match((await stored(made.token.id)).data, card)
    t.match((await stored(made.both.first.id)).data, card)
    t.match(made, {
      token: { metadata: { orderId: 'x' }, createdBy: String },
      intent: { id: String, expiresAt: String, card: { last4: '4242', expirationMonth: 3 } },
      session: { sessionKey: String, nonce: String, expiresAt: String },
    })
    const events = await eventsOf(lab, 'change')
    t.match(events.at(-1), {
      empty: false,
      complete: true,
      valid: true,
      cardBrand: 'visa',
      cardLast4: '4242',
    })
    t.notOk(
      events.some(({ errors }) => errors),
      'the code has the length of the brand',
    )
  },
)

t.test('the value of a card field can be used to update a token', needsChromium, async (t) => {
  const { id } = await coffer.server
    .as(coffer.keys.private)
    .tokens.create({ type: 'token', data: { name: 'Ada' } })
  const { key } = await coffer.server.as(coffer.keys.management).applications.create({
    name: 'editor',
    type: 'public',
    permissions: ['token:update'],
  })
  const lab = await openLab(t)
  await lab.run(async ({ scope }) => {
    scope.code = await scope.add('cardVerificationCode', '#a')
  })
  await lab.tab.getByLabel('CVC').fill('123')
  const changed = await lab.tab.evaluate(
    ([id, apiKey]) => {
      const { bt, code } = globalThis as Json
      return bt.tokens.update(id, { data: { code }, searchIndexes: ['x'] }, { apiKey })
    },
    [id, key],
  )
  t.match(changed, { id, modifiedBy: String, searchIndexes: ['x'] })
  t.strictSame((await stored(id)).data, { name: 'Ada', code: '123' })
})

t.test(
  'each card field sends the event ready once, also to a listener that is added later',
  needsChromium,
  async (t) => {
    const lab = await openLab(t)
    const late = await lab.run(async ({ scope }) => {
      const calls: string[] = []
      const field = await scope.add('cardNumber', '#a')
      field.on('ready', () => calls.push('at once'))
      await new Promise((resolve) => setTimeout(resolve))
      field.on('ready', ({ type }: Json) => calls.push(type))
      field.on('ready', () => calls.push('never')).unsubscribe()
      await new Promise((resolve) => setTimeout(resolve))
      return { calls, mounted: field.mounted, missing: await scope.refusal(field.mount('#none')) }
    })
    const initial = await lab.run(async ({ scope }) => {
      const from = scope.events.length
      await scope.add('text', '#b', { value: 'start' })
      await new Promise((resolve) => setTimeout(resolve))
      return scope.events.slice(from)
    })
    t.match(
      initial,
      [{ type: 'ready' }, { type: 'change', empty: false }],
      'the event about the initial value comes after the event ready',
    )
    t.match(late, { calls: ['at once', 'ready'], mounted: true, missing: { message: /no element #none/ } })
    t.equal((await eventsOf(lab, 'ready')).length, 2)
  },
)

t.test(
  'the event change reports brand, last digits and errors, and is sent only if one of these has changed',
  needsChromium,
  async (t) => {
    const lab = await openLab(t)
    const { tab } = lab
    await lab.run(async ({ scope }) => {
      scope.number = await scope.add('cardNumber', '#a')
      scope.code = await scope.add('cardVerificationCode', '#b')
      scope.eager = await scope.add('cardNumber', '#c', { 'aria-label': 'Eager', validateOnChange: true })
    })
    const number = tab.getByLabel('Card Number')
    await number.pressSequentially(NUMBER)
    t.equal(await number.inputValue(), '4242 4242 4242 4242')
    const typed = await eventsOf(lab, 'change')
    t.strictSame(
      typed.map(({ complete, cardBrand }) => [complete, cardBrand]),
      [
        [false, 'visa'],
        [true, 'visa'],
      ],
    )
    t.match(typed[1], { type: 'change', empty: false, valid: true, cardLast4: '4242', cardBin: '42424242' })
    await number.fill('378282246310005')
    t.equal(await number.inputValue(), '3782 822463 10005')
    await lab.run(({ scope }) => scope.code.update({ cardBrand: scope.number.cardMetadata.cardBrand }))
    await tab.getByLabel('CVC').pressSequentially('12345')
    t.equal(await tab.getByLabel('CVC').inputValue(), '1234')

    await number.fill('4242424242424241')
    t.match((await eventsOf(lab, 'change')).at(-1), {
      complete: false,
      errors: undefined,
      cardLast4: undefined,
    })
    await number.blur()
    const errors = [{ targetId: 'a', type: 'invalid' }]
    t.match((await eventsOf(lab, 'change')).at(-1), { complete: false, errors })
    t.match((await eventsOf(lab, 'blur')).at(-1), { targetId: 'a', empty: false, complete: false, errors })
    t.equal(await number.getAttribute('aria-invalid'), 'true')
    await number.fill(NUMBER)
    t.match((await eventsOf(lab, 'change')).at(-1), { complete: true, errors: undefined })
    await tab.getByLabel('Eager').fill('4242424242424241')
    t.match((await eventsOf(lab, 'change')).at(-1), { errors: [{ targetId: 'c', type: 'invalid' }] })
    await lab.run(({ scope }) => scope.eager.update({ skipLuhnValidation: true }))
    t.match((await eventsOf(lab, 'change')).at(-1), { complete: true, errors: undefined })
  },
)

t.test(
  'a field sends dates and masked texts in the documented form, and reports invalid input',
  needsChromium,
  async (t) => {
    const lab = await openLab(t)
    const { tab } = lab
    const last = new Date()
    last.setDate(0)
    const lastMonth = `${String(last.getMonth() + 1).padStart(2, '0')}/${String(last.getFullYear()).slice(-2)}`
    await lab.run(async ({ scope }) => {
      scope.date = await scope.add('cardExpirationDate', '#a')
      const mask = [/\d/, /\d/, /\d/, '-', /\d/, /\d/, '-', /\d/, /\d/, /\d/, /\d/]
      scope.text = await scope.add('text', '#b', { title: 'SSN', mask, transform: /-/ })
    })
    const date = tab.getByLabel('Expiration Date')
    for (const [text, wanted] of [
      ['13/30', 'invalid'],
      ['00/30', 'invalid'],
      [lastMonth, 'invalid'],
      ['12', 'incomplete'],
    ] as const) {
      await date.fill(text)
      await date.blur()
      const { errors } = await lab.run(({ scope }) => scope.date.metadata)
      t.match(errors, [{ targetId: 'a', type: wanted }], text)
    }
    await date.fill(lastMonth)
    await lab.run(({ scope }) => scope.date.update({ maxElapsedExpirationYear: 1 }))
    t.match(await lab.run(({ scope }) => scope.date.metadata), { complete: true, valid: true })

    const ssn = tab.getByLabel('SSN')
    await ssn.pressSequentially('12345')
    t.equal(await ssn.inputValue(), '123-45')
    await tab.keyboard.press('Backspace')
    await tab.keyboard.press('Backspace')
    t.equal(await ssn.inputValue(), '123', 'a separator at the end goes with the character behind it')
    const refused = await lab.run(({ bt, scope }) => {
      const { date, text } = scope
      const made = date.format('yyyy-MM')
      return scope.refusal(bt.tokens.create({ type: 'token', data: { ssn: text, dates: [made] } }))
    })
    t.match(refused, {
      name: 'BasisTheoryValidationError',
      details: { data: { ssn: { type: 'incomplete' } } },
      validation: [{ targetId: 'b', type: 'incomplete' }],
    })
    t.strictSame(Object.keys(refused.details.data), ['ssn'])
    t.notOk(
      lab.asked.some((url) => url.includes('/tokens')),
      'nothing was sent',
    )
    await ssn.fill('123456789')
    const token = await lab.run(({ bt, scope: { date, text } }) =>
      bt.tokens.create({ type: 'token', data: { ssn: text, dates: [date.format('yyyy-MM'), date] } }),
    )
    const year = last.getFullYear()
    t.match((await stored(token.id)).data, {
      ssn: '123456789',
      dates: [`${year}-${lastMonth.slice(0, 2)}`, lastMonth],
    })
    const unmounted = await lab.run(({ bt, scope }) => {
      scope.text.unmount()
      return scope.refusal(bt.tokens.create({ type: 'token', data: scope.text }))
    })
    t.match(unmounted, { name: 'BasisTheoryValidationError', details: { data: { type: 'incomplete' } } })
  },
)

t.test(
  'the card fields report errors of the server and of the network with their status',
  needsChromium,
  async (t) => {
    const lab = await openLab(t)
    const rules = [{ operation: 'token create', kind: 'status', status: 400, times: 1 } as const]
    await coffer.server.control.faults.set({ rules })
    const create = () =>
      lab.run(({ bt, scope }) => scope.refusal(bt.tokens.create({ type: 'nope', data: 'x' })))
    t.match(await create(), { name: 'BasisTheoryApiError', status: 400, data: { status: 400 } })
    t.match(await create(), {
      name: 'BasisTheoryApiError',
      status: 400,
      data: { errors: { type: [String] } },
    })
    const forbidden = await lab.run(({ bt, scope }) =>
      scope.refusal(
        bt.tokens.create({ type: 'token', data: 'x' }, { apiKey: 'key_none', correlationId: 'mine' }),
      ),
    )
    t.match(forbidden, { status: 401 })
    await lab.tab.unrouteAll()
    t.match(await create(), { name: 'BasisTheoryApiError', status: -1, message: /does not answer/ })
    await lab.tab.unrouteAll()
    await routeElements(lab.tab, { url: 'http://localhost:1' })
    t.match(await create(), {
      status: 502,
      data: { detail: /Coffer does not answer at http:\/\/localhost:1/ },
    })
    const install = (url: string) => installElements(lab.tab, { url })
    await t.rejects(
      install('http://localhost:1'),
      /Coffer does not answer at http:\/\/localhost:1\. Start it: /,
    )
    await t.rejects(install(shop), /is no server of Coffer/)
  },
)

t.test('the methods of card fields have the documented effects', needsChromium, async (t) => {
  const lab = await openLab(t)
  const { tab, run } = lab
  await run(async ({ scope }) => {
    scope.one = await scope.add('text', '#a', {
      'aria-label': 'One',
      value: 'start',
      style: { base: { color: 'rgb(9, 9, 9)' } },
    })
    scope.two = await scope.add('text', '#b', { 'aria-label': 'Two', password: true, maxLength: 3 })
    await scope.two.setValueRef(scope.one)
  })
  const [one, two] = [tab.getByLabel('One'), tab.getByLabel('Two')]
  t.strictSame([await one.inputValue(), await two.inputValue()], ['start', 'sta'])
  t.equal(await one.evaluate((input) => (globalThis as Json).getComputedStyle(input).color), 'rgb(9, 9, 9)')
  await one.fill('new')
  t.equal(await two.inputValue(), 'new', 'the second field gets the new value of the first field')
  await run(({ scope }) => scope.one.focus())
  for (const key of ['a', 'Enter', 'Shift+Escape']) await tab.keyboard.press(key)
  const keys = await eventsOf(lab, 'keydown')
  t.match(keys, [
    { key: 'Enter', targetId: 'a', shiftKey: false },
    { key: 'Escape', shiftKey: true },
  ])
  t.equal(keys.length, 2)
  t.match((await eventsOf(lab, 'focus')).at(-1), { type: 'focus', targetId: 'a' })
  await run(({ scope }) => scope.one.blur())
  t.match((await eventsOf(lab, 'blur')).at(-1), { targetId: 'a', complete: true })
  await run(({ scope }) => scope.one.update({ disabled: true, placeholder: 'Your name' }))
  t.equal(await one.isDisabled(), true)
  t.equal(await one.getAttribute('placeholder'), 'Your name')
  await run(({ scope }) => scope.one.clear())
  t.strictSame([await one.inputValue(), await two.inputValue()], ['', ''])
  await run(({ scope }) => scope.one.validate())
  t.match(await run(({ scope }) => scope.one.metadata), { errors: [{ targetId: 'a', type: 'incomplete' }] })
  await run(({ scope }) => scope.one.unmount())
  t.equal(await one.count(), 0)
})

t.test(
  'the page gets references in place of values, and only fields show the values',
  needsChromium,
  async (t) => {
    const lab = await openLab(t)
    const card = { number: NUMBER, expiration_month: 12, expiration_year: 2031, cvc: '123' }
    const { id } = await coffer.server.as(coffer.keys.private).tokens.create({ type: 'card', data: card })
    const made = await lab.run(async ({ bt, scope }) => {
      scope.card = await scope.add('card', '#a')
      scope.number = await scope.add('cardNumber', '#b', { 'aria-label': 'Own number' })
      scope.date = await scope.add('cardExpirationDate', '#c', { 'aria-label': 'Own date' })
      scope.session = await bt.sessions.create()
      return scope.session.nonce
    })
    const rules = [
      {
        description: 'x',
        priority: 1,
        container: '/',
        transform: 'reveal',
        permissions: ['token:read', 'token:use'],
      },
    ]
    const authorized = await coffer.backend.send('POST /sessions/authorize', { nonce: made, rules })
    t.equal(authorized.status, 200, authorized.text)
    await lab.tab.evaluate((id) => {
      ;(globalThis as Json).tokenId = id
    }, id)
    const token = await lab.run(async ({ bt, scope }) => {
      const apiKey = scope.session.sessionKey
      scope.token = await bt.tokens.retrieve(scope.tokenId, { apiKey })
      const { number, expiration_month: month, expiration_year: year } = scope.token.data
      scope.card.setValue(scope.token.data)
      scope.number.setValue(number)
      scope.date.setValue({ month, year })
      return { token: scope.token, card: scope.card.metadata }
    })
    t.match(token, { token: { id, data: { number: { path: 'data.number' } } }, card: { complete: true } })
    t.notMatch(JSON.stringify(token), NUMBER)
    t.equal(await lab.tab.getByLabel('Card Number').inputValue(), '4242 4242 4242 4242')
    t.equal(await lab.tab.getByLabel('Own number').inputValue(), '4242 4242 4242 4242')
    t.equal(await lab.tab.getByLabel('Own date').inputValue(), '12/31')
  },
)

t.test(
  'a proxy gets the values of card fields, and the page gets references in the response',
  needsChromium,
  async (t) => {
    const lab = await openLab(t)
    const { processor, server, keys } = coffer
    const proxy = await server.as(keys.management).proxies.create({
      name: 'processor',
      destination_url: processor.url,
      require_auth: false,
    })
    await lab.tab.evaluate((key) => {
      ;(globalThis as Json).proxyKey = key
    }, proxy.key)
    await lab.run(async ({ scope }) => {
      scope.number = await scope.add('cardNumber', '#a')
    })
    await lab.tab.getByLabel('Card Number').fill(NUMBER)
    processor.answer = ({ url, body }, response) => {
      response.statusCode = url.includes('refuse') ? 422 : 200
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ said: [JSON.parse(body).number], url }))
    }
    const answers = await lab.run(async ({ bt, scope }) => {
      const body = { number: scope.number }
      const headers = { 'BT-PROXY-KEY': scope.proxyKey }
      return {
        plain: await bt.proxy.post({ path: 'charges', query: { a: '1' }, headers, body }),
        full: await bt.proxy.put({ headers, body, includeResponseHeaders: true }),
        refused: await scope.refusal(bt.proxy.post({ path: '/refuse', headers, body })),
      }
    })
    t.match(JSON.parse(processor.received.at(-3)!.body), { number: NUMBER })
    t.equal(processor.received.at(-3)!.url, '/charges?a=1')
    t.match(answers, {
      plain: { said: [{ path: 'said[0]' }] },
      full: { data: { said: [{ path: 'said[0]' }] }, headers: { 'bt-trace-id': String } },
      refused: { name: 'BasisTheoryApiError', status: 422, data: { said: [{ path: 'said[0]' }] } },
    })
    t.notMatch(JSON.stringify(answers), NUMBER)
  },
)

t.test(
  'the value of a field is in no event, attribute, text, console line or address',
  needsChromium,
  async (t) => {
    const lab = await openLab(t)
    const heard = await lab.run(async ({ scope }) => {
      scope.heard = []
      const { document } = scope
      for (const type of ['input', 'change', 'keydown', 'beforeinput', 'paste', 'focusin'])
        document.body.addEventListener(type, ({ target }: Json) => scope.heard.push(type, target.value))
      const form = document.createElement('form')
      form.onsubmit = () => scope.heard.push('submit')
      document.body.append(form)
      form.append(document.querySelector('#a'), document.createElement('button'))
      scope.card = await scope.add('card', '#a')
    })
    t.equal(heard, undefined)
    await fillCard(lab.tab, NUMBER, '12/30', '987')
    await lab.tab.getByLabel('CVC').press('Enter')
    const seen = await lab.run(({ bt, scope }) => ({
      ...{ events: scope.events, heard: scope.heard, element: scope.card, keys: Object.keys(scope.card) },
      ...{ html: scope.document.documentElement.outerHTML, bt, metadata: scope.card.cardMetadata },
      form: scope.document.querySelector('input').form,
    }))
    const all = [JSON.stringify(seen), ...lab.printed, ...lab.asked].join('\n')
    for (const value of [NUMBER, '4242 4242', '"987"', '12/30']) t.notMatch(all, value)
    t.strictSame(
      seen.heard,
      [],
      'listeners of the page hear nothing of the inputs, and Enter submits no form',
    )
    t.equal(seen.form, null, 'the inputs belong to no form')
  },
)

t.test(
  'an error names the option, method, event or format that the card fields lack',
  needsChromium,
  async (t) => {
    const lab = await openLab(t)
    const said = await lab.run(async ({ bt, scope }) => {
      const thrown = (call: () => unknown) => {
        try {
          return String(call())
        } catch (error) {
          return `${(error as Error).name} ${(error as Error).message}`
        }
      }
      const text = bt.createElement('text', { targetId: 'a' })
      const date = bt.createElement('cardExpirationDate', { targetId: 'a' })
      return {
        encrypt: (await scope.refusal(bt.tokens.encrypt({}))).message,
        'bt.client': (await scope.refusal(bt.client.get('https://x.test'))).message,
        copyButton: thrown(() => bt.createElement('copyButton', { targetId: 'a' })),
        coBadgedSupport: thrown(() => bt.createElement('card', { coBadgedSupport: ['bancontact'] })),
        enableCopy: (await scope.refusal(text.update({ enableCopy: true }))).message,
        'event copy': thrown(() => text.on('copy', () => {})),
        LLLL: thrown(() => date.format('LLLL')),
        targetId: thrown(() => bt.createElement('cardNumber')),
        device: typeof bt.device.getDeviceInfo().timeZone,
      }
    })
    const { device, ...errors } = said
    t.equal(device, 'string')
    for (const [name, message] of Object.entries(errors)) t.match(message, name)
  },
)

t.test(
  'with the option for frames, tests find the fields with the same locators as the hosted fields',
  needsChromium,
  async (t) => {
    const { tab, strangers } = await open(t, (tab) => installElements(tab, coffer.server, { frame: true }))
    await tab.evaluate((key) => (globalThis as Json).kit.showCheckout(key), coffer.keys.public)
    await tab.locator('iframe').nth(2).waitFor()
    t.equal(await tab.locator('input').count(), 0)
    await tab.frameLocator('#number iframe').getByLabel('Card Number').fill('4264281511112228')
    await tab.frameLocator('#date iframe').getByLabel('Expiration Date').fill('12/30')
    await tab.frameLocator('#code iframe').getByLabel('CVC').fill('123')
    await tab.getByRole('button', { name: 'Pay' }).click()
    await tab.locator('#result').filter({ hasText: 'failed' }).waitFor()
    t.strictSame(strangers, [])
  },
)

t.test(
  'a form with the fields has no accessibility problem, and the Tab key follows the order of the page',
  needsChromium,
  async (t) => {
    const { tab } = await open(t, (tab) => installElements(tab, coffer.server))
    await tab.evaluate((key) => (globalThis as Json).kit.showCheckout(key), coffer.keys.public)
    await tab.getByLabel('Card Number').focus()
    const order: Json[] = []
    for (let step = 0; step < 4; step++) {
      order.push(await tab.evaluate('document.activeElement.ariaLabel ?? document.activeElement.textContent'))
      await tab.keyboard.press('Tab')
    }
    t.strictSame(order, ['Card Number', 'Expiration Date', 'CVC', 'Pay'])
    await checkPage(t, tab, 'a form of the fields')
  },
)
