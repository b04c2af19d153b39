/** How programs are pointed at this server: the shortest use of each client. */

export interface Client {
  name: string
  /** The package, as its registry names it; absent for a program. */
  package?: string
  language: string
  code: string
}

/** The prefix that the packages send. */
export const CLIENT_PREFIX = 'bt'
/** Stands for the address of the server, and for an API key. */
export const PLACEHOLDERS = { url: 'http://localhost:4010', key: 'key_…' }

const { url, key } = PLACEHOLDERS
const NODE = '@basis-theory/node-sdk'
const JAVASCRIPT = '@basis-theory/basis-theory-js'

export const CLIENTS: readonly Client[] = [
  {
    name: 'Node',
    package: NODE,
    language: 'js',
    code: `import { BasisTheoryClient } from '${NODE}'

const client = new BasisTheoryClient({ baseUrl: '${url}', apiKey: '${key}' })
const token = await client.tokens.create({ type: 'token', data: 'a secret' })`,
  },
  {
    name: 'JavaScript',
    package: JAVASCRIPT,
    language: 'js',
    code: `import { BasisTheory } from '${JAVASCRIPT}'

// It speaks plain HTTP to the name localhost only.
const options = { apiBaseUrl: '${url}', disableTelemetry: true }
const client = await new BasisTheory().init('${key}', options)
const token = await client.tokens.create({ type: 'token', data: 'a secret' })`,
  },
  {
    name: 'Python',
    package: 'BasisTheoryClient',
    language: 'python',
    code: `from basis_theory import BasisTheory

client = BasisTheory(base_url="${url}", api_key="${key}")
token = client.tokens.create(type="token", data="a secret")`,
  },
  {
    name: 'Go',
    package: 'github.com/Basis-Theory/go-sdk/v6',
    language: 'go',
    code: `import (
	"github.com/Basis-Theory/go-sdk/v6/client"
	"github.com/Basis-Theory/go-sdk/v6/option"
)

var vault = client.NewClient(
	option.WithBaseURL("${url}"),
	option.WithAPIKey("${key}"),
)`,
  },
  {
    name: 'Terraform',
    package: 'Basis-Theory/basistheory',
    language: 'hcl',
    code: `provider "basistheory" {
  api_url = "${url}"
  api_key = "${key}" # of a management application
}`,
  },
  {
    name: 'curl',
    language: 'sh',
    code: `curl ${url}/tokens -H 'BT-API-KEY: ${key}' \\
  -H 'Content-Type: application/json' -d '{"type":"token","data":"a secret"}'`,
  },
]
