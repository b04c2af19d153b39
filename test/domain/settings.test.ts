import t from 'tap'
import { defaultSender, readMailServer, readSender } from '../../src/domain/invitation/mail-server.js'
import { requireSettingName, showSetting, VAULT_SETTINGS } from '../../src/domain/settings.js'
import { refusal } from '../support/refusals.js'

t.test('a setting accepts its valid values and refuses all others', async (t) => {
  const cases: [keyof typeof VAULT_SETTINGS, string, unknown][] = [
    ['public_url', 'https://vault.example.com/', 'https://vault.example.com'],
    ['public_url', 'http://localhost:4010/base/', 'http://localhost:4010/base'],
    ['public_url', 'ftp://example.com', undefined],
    ['public_url', 'https://user:password@example.com', undefined],
    ['public_url', 'https://example.com/?a=b', undefined],
    ['public_url', 'javascript:alert(1)', undefined],
    ['tokens.included_monthly_active', '1000', 1000],
    ['tokens.included_monthly_active', '-1', undefined],
    ['tokens.included_monthly_active', '9007199254740993', undefined],
    ['search.masked_data', 'false', false],
    ['search.masked_data', 'no', undefined],
    ['reactors.undeclared_args', 'strip', 'strip'],
    ['reactors.time_limit_ms', '99', undefined],
    ['reactors.time_limit_ms', '100', 100],
    ['mail.from', 'Ada <ada@example.com>', 'Ada <ada@example.com>'],
    ['mail.from', 'Ada\r\nBcc: eve <ada@example.com>', undefined],
    ['mail.ca', 'no certificate', undefined],
  ]
  t.throws(() => requireSettingName('constructor'), { code: 'usage' })
  for (const [name, text, value] of cases) {
    const read = () => VAULT_SETTINGS[name].read(text)
    if (value === undefined) t.throws(read, { code: 'validation' }, `${name} = ${JSON.stringify(text)}`)
    else t.equal(read(), value, `${name} = ${text}`)
  }
})

t.test('the password of the mail server is never shown, not even in an error', async (t) => {
  const values = { 'mail.url': 'smtp://ada:s3cret-pass@mail.example.com:587' }
  t.same(showSetting('mail.url', values), {
    name: 'mail.url',
    value: 'smtp://ada:********@mail.example.com:587',
    is_set: true,
    description: VAULT_SETTINGS['mail.url'].description,
  })
  for (const text of ['smpt://ada:s3cret-pass@h', 'smtp://ada:s3cret-pass@h/path', 'smtp://a:s3cret%zz@h'])
    t.notMatch(refusal(() => VAULT_SETTINGS['mail.url'].read(text)).message, 's3cret')
})

t.test('the setting of the mail server is a URL with the scheme smtp or smtps', async (t) => {
  t.same(readMailServer('smtp://mail.example.com'), { host: 'mail.example.com', port: 587, tls: 'required' })
  t.same(readMailServer('smtps://u%40x:p%3Aq@mail.example.com'), {
    host: 'mail.example.com',
    port: 465,
    tls: 'implicit',
    user: 'u@x',
    password: 'p:q',
  })
  t.same(readMailServer('smtp://localhost:1025'), { host: 'localhost', port: 1025, tls: 'offered' })
  t.same(readMailServer('smtp://[::1]:1025'), { host: '::1', port: 1025, tls: 'offered' })
  t.equal(readMailServer('smtp://127.0.0.1.example.com').tls, 'required')
  for (const text of ['', 'mail.example.com', 'http://x', 'smtp://', 'smtp://h?tls=off', 'smtp://h:0x1'])
    t.throws(() => readMailServer(text), { code: 'validation' }, text)
})

t.test('the setting of the mail sender is an address with or without a name', async (t) => {
  t.same(readSender('ada@example.com'), { name: '', address: 'ada@example.com' })
  t.same(readSender('"Ada L." <ada@example.com>'), { name: 'Ada L.', address: 'ada@example.com' })
  t.same(defaultSender('https://vault.example.com:8443'), {
    name: 'Coffer',
    address: 'no-reply@vault.example.com',
  })
  t.same(defaultSender('http://[::1]:4010').address, 'no-reply@localhost')
})
