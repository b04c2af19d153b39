import { omitUndefined } from '../omit-undefined.js'

/** This JSON file is in the directory of linked packages. It maps the name of each package to a version. */
export const VERSIONS_FILE = 'coffer-dependencies.json'

/** The limit for all linked packages of one reactor. */
export const MAX_LINKED_BYTES = 8 * 1024 * 1024

const MAX_NAME_CHARACTERS = 214
/**
 * Names that npm allows, and capital letters for old packages. No part begins with a dot, so a name is never a path.
 */
const NAME = /^(?:@[a-z0-9~-][\w.~-]*\/)?[a-z0-9~-][\w.~-]*$/i

export function isPackageName(name: string): boolean {
  return name.length <= MAX_NAME_CHARACTERS && NAME.test(name)
}

/** A path below a package. No part begins with a dot, so the path cannot leave the package. */
const SUBPATH = /^(?:\/[\w@~+-][\w.@~+-]*)+$/

/**
 * Divides `lodash/merge` into `lodash` and `/merge`. Returns undefined if the text is neither a package nor a path
 * below a package. Refuses paths into `node_modules`, because the project does not declare the packages there.
 */
export function splitRequest(request: string): { name: string; subpath: string } | undefined {
  const [name = ''] = /^(?:@[^/]*\/)?[^/]*/.exec(request) ?? []
  const subpath = request.slice(name.length)
  const isPath = SUBPATH.test(subpath) && !subpath.split('/').includes('node_modules')
  const isRequest = isPackageName(name) && request.length <= MAX_NAME_CHARACTERS
  return isRequest && (subpath === '' || isPath) ? { name, subpath } : undefined
}

const MAX_SUBPATHS = 100
const REQUIRED = /\brequire\s*\(\s*(['"`])([^'"`\s]+)\1\s*\)/g

/**
 * If the code requires a subpath of one of `packages` by a literal name, adds the subpath. Adds at most {@link
 * MAX_SUBPATHS}.
 */
export function withSubpaths(packages: Versions, code: string): Versions {
  const found: Record<string, string> = {}
  for (const [, , request = ''] of code.matchAll(REQUIRED)) {
    const { name, subpath = '' } = splitRequest(request) ?? {}
    if (name === undefined || subpath === '' || !Object.hasOwn(packages, name)) continue
    found[request] = packages[name]!
    if (Object.keys(found).length === MAX_SUBPATHS) break
  }
  return { ...packages, ...found }
}

export type Versions = Readonly<Record<string, string>>

export const ANY_VERSION = '*'

export type DependencyErrorCode =
  | 'dependencies_not_available'
  | 'dependency_not_found'
  | 'dependency_version_mismatch'
  | 'dependency_not_supported'

/** Why a package cannot be used. `reason` is a sentence without the name of the package. */
export interface DependencyFinding {
  code: DependencyErrorCode
  name: string
  version: string
  installed?: string
  reason: string
}

/** Why code was not built. In the API, these property names have the prefix `error_`. */
export interface BuildError {
  code: string
  message: string
  details?: Readonly<Record<string, unknown>>
}

export function describeFindings(findings: readonly DependencyFinding[]): BuildError | undefined {
  const [first, ...others] = findings
  if (first === undefined) return undefined
  const more = others.length === 0 ? '' : ` ${others.length} more: see error_details.`
  return {
    code: first.code,
    message: `${first.name} ${first.version}: ${first.reason}${more}`,
    details: {
      dependencies: findings.map(({ name, version, installed, reason }) =>
        omitUndefined({ name, version, installed, reason }),
      ),
    },
  }
}

export function isSameMajor(wanted: string, installed: string): boolean {
  return wanted === ANY_VERSION || majorOf(wanted) === majorOf(installed)
}

export function majorOf(version: string): string {
  return version.slice(0, version.indexOf('.'))
}

/** Maps a name that code requires to the name of the package that the project installs. */
export const ALIASES: Readonly<Record<string, string>> = {
  '@basis-theory/node-sdk-2': '@basis-theory/node-sdk',
}

/** The packages that code with the image `node-bt` may require without a declaration. */
const LISTED: readonly string[] =
  `@adyen/api-library @basis-theory/apple-pay-js @basis-theory/basis-theory-js @basis-theory/node-sdk-2
  @basis-theory/google-pay-js @basis-theory/shopify-js aws-sdk axios braintree crypto-js csv-parse dropbox dwolla-v2
  exceljs fast-xml-parser json-stable-stringify jsonpath jszip mastercard-client-encryption mastercard-oauth1-signer
  node-fetch node-forge node-jose openpgp pdf-lib pdfkit p-limit snakecase-keys soap split2 ssh2 stripe tesseract.js
  twilio uuid xmlbuilder2 yup`.split(/\s+/)

/**
 * Finds listed packages whose names follow a quotation mark in the code. Only these packages are linked, because
 * linking takes time.
 */
export function findListed(code: string): Versions {
  const named = LISTED.filter((name) =>
    [`'${name}`, `"${name}`, `\`${name}`].some((each) => code.includes(each)),
  )
  return Object.fromEntries(named.map((name) => [name, ANY_VERSION]))
}
