/** The example of a deployment: its syntax, its files, and the settings of its services. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { parse } from 'yaml'
import { parseLine } from '../src/cli/program.js'
import { openControlled } from '../src/control/control-state.js'
import { authenticate } from '../src/framework/caller/authenticate.js'
import { SETTINGS } from '../src/global-flags.js'
import { registry } from '../src/operations/all.js'
import { parseStoreAddress } from '../src/storage/postgres/address.js'

interface Service {
  build: { context: string }
  user: string
  read_only: boolean
  cap_drop: string[]
  security_opt: string[]
  command: string[]
  environment: Record<string, string>
  secrets?: string[]
  volumes?: string[]
}

const run = promisify(execFile)
const root = new URL('../../', import.meta.url)
const text = readFileSync(new URL('fixtures/deploy/compose.yaml', root), 'utf8')
const entrypoint = readFileSync(new URL('fixtures/deploy/entrypoint.sh', root), 'utf8')
const { services, volumes, secrets } = parse(text, { merge: true, strict: true }) as {
  services: Record<string, Service>
  volumes: Record<string, unknown>
  secrets: Record<string, { file: string }>
}
const ours = Object.entries(services).filter(([name]) => name !== 'db')

t.test('the image is built from the checkout and runs with minimal rights', async (t) => {
  const least = {
    user: 'coffer',
    read_only: true,
    cap_drop: ['ALL'],
    security_opt: ['no-new-privileges:true'],
  }
  for (const [name, { build, user, read_only, cap_drop, security_opt }] of ours) {
    t.strictSame({ user, read_only, cap_drop, security_opt }, least, name)
    t.equal(build.context, '../..')
  }
  const dockerfile = readFileSync(new URL('Dockerfile', root), 'utf8')
  const commands = [...dockerfile.matchAll(/npm (?:[a-z]+)[^&\n]*/g)].map(([command]) => command.trim())
  t.strictSame(commands, [
    'npm ci --ignore-scripts',
    'npm run build',
    'npm pack --ignore-scripts',
    'npm ci --ignore-scripts --omit=dev --prefix /coffer',
  ])
  const image = dockerfile.split('\nFROM ').at(-1)!
  t.match(image, /\nUSER coffer\n/)
  t.match(image, /\nHEALTHCHECK [^\n]*\\\n/)
  t.match(image, /\nENTRYPOINT \["\/usr\/local\/bin\/coffer-entrypoint"\]\nCMD \[\]\n/)
  const [, command = ''] = /\ncoffer (serve .*) "\$@"/.exec(entrypoint) ?? []
  const words = command.replace(/"\$\{COFFER_PREFIX:-(\w+)\}"/, '$1').split(' ')
  t.same(words, 'serve --ephemeral --host 0.0.0.0 --allow-remote --prefix bt'.split(' '))
  t.notOk('text' in parseLine(words, registry, 80))
})

t.test('no file tells users to install a package that is not published', async (t) => {
  const { stdout } = await run('git', ['ls-files', '-z'], { cwd: fileURLToPath(root) })
  const install = /\bnp(?:m (?:i|install|exec|add)|x|m create)\b[^\n`'"&|]*?\scoffer(?=[\s@`'"]|$)/m
  for (const path of stdout.split('\0')) {
    const isText = /\.(?:ts|tsx|js|cjs|mjs|json|md|ya?ml|txt)$|Dockerfile$/.test(path)
    if (!isText || path.startsWith('test/') || path === 'package-lock.json') continue
    t.notMatch(readFileSync(new URL(path, root), 'utf8'), install, path)
  }
  t.match('RUN npm install --global --ignore-scripts coffer', install)
  t.match('npx coffer serve', install)
})

t.test('every secret and every volume of a service is declared, and each secret is a file', async (t) => {
  const used = Object.values(services).flatMap((service) => service.secrets ?? [])
  t.strictSame([...new Set(used)].sort(), Object.keys(secrets).sort())
  for (const { file } of Object.values(secrets)) t.match(file, /^\.\/secrets\//)
  const named = Object.values(services).flatMap((service) => service.volumes ?? [])
  const kept = named.map((volume) => volume.split(':')[0]!).filter((name) => !name.startsWith('.'))
  t.strictSame(kept, Object.keys(volumes))
  const paths = [...text.matchAll(/\/run\/secrets\/([\w-]+)/g)].map(([, name]) => name!)
  t.ok(paths.length > 5)
  for (const name of paths) t.ok(name in secrets, name)
})

t.test(
  'the program accepts the commands and settings of the example, and the store is reached over TLS',
  async (t) => {
    const known = Object.values(SETTINGS).map(({ variable }) => variable as string)
    for (const [name, { command, environment }] of ours) {
      for (const variable of Object.keys(environment)) t.ok(known.includes(variable), variable)
      const { warning, hasPassword, caFile } = parseStoreAddress(environment.COFFER_STORE!)
      t.strictSame([warning, hasPassword, caFile], [undefined, false, '/run/secrets/ca'])
      const line =
        command[0] === 'coffer'
          ? command
          : /coffer [^;]*/.exec(command.at(-1)!.replace(/\$\$\([^)]*\)/, 'x'))![0].split(' ')
      t.notOk('text' in parseLine(line.slice(1), registry, 80), name)
    }
    t.equal(ours.map(([name]) => name).join(), 'init,coffer,backup')
    const wordsOf = (name: string) => services[name]!.command.join(' ')
    t.match(wordsOf('db'), /-c ssl=on -c ssl_cert_file=\S+ -c ssl_key_file=/, 'the database uses TLS')
    t.match(wordsOf('coffer'), /--tls-cert \S+ --tls-key /, 'the server uses TLS')
    t.match(wordsOf('backup'), /coffer vault backup \/backups\//)
    t.strictSame(services.backup!.volumes, ['./backups:/backups'])
    t.throws(() => parseLine(['serve', '--tls-certificate', 'x'], registry, 80), 'an unknown flag is refused')
  },
)

t.test('the YAML examples of docs/containers.md are valid, and their seed starts a server', async (t) => {
  const document = readFileSync(new URL('docs/containers.md', root), 'utf8')
  const blocks = [...document.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, yaml = '']) => yaml)
  const [compose, scraping, actions, job] = blocks.map((yaml) => parse(yaml, { merge: true, strict: true }))
  t.equal(blocks.length, 4)
  t.equal(scraping.scrape_configs[0].metrics_path, '/_coffer/metrics')
  const { coffer, shop } = compose.services
  const seed = JSON.parse(compose.configs.seed.content)
  t.equal(seed.applications[0].key, shop.environment.BT_API_KEY)
  t.equal(new URL(shop.environment.BT_API_URL).hostname, coffer.environment.COFFER_ALLOW_HOST)
  const { control } = await openControlled({ tenantName: 'test', acceptsTestKeys: true }, seed)
  t.teardown(() => control.close())
  const caller = await authenticate(control.app, shop.environment.BT_API_KEY)
  t.match(caller, { applicationType: 'private' })
  const read = new Set([...entrypoint.matchAll(/COFFER_\w+/g)].map(([name]) => name))
  const known = new Set([...read, 'COFFER_CONTROL_KEY', 'COFFER_ALLOW_HOST'])
  const [sidecar] = job.spec.template.spec.initContainers
  const given = [coffer.environment, actions.jobs.test.services.coffer.env].flatMap(Object.keys)
  for (const name of [...given, ...sidecar.env.map((each: { name: string }) => each.name)])
    t.ok(known.has(name), name)
  t.notOk('text' in parseLine(['serve', '--ephemeral', ...sidecar.args], registry, 80))
})
