/** The npm packages that code declares: names, what is wrong with one, and the packages that every code of `node-bt` has. */
import { omitUndefined } from '../omit-undefined.js'

/** The list of versions beside linked packages: JSON, version by name. */
export const VERSIONS_FILE = 'coffer-dependencies.json'

/** The linked texts of one reactor together. */
export const MAX_LINKED_BYTES = 8 * 1024 * 1024

const MAX_NAME_CHARACTERS = 214
/** npm's grammar, with capitals, which old packages have. No part begins with a dot, so a name is never a path. */
const NAME = /^(?:@[a-z0-9~-][\w.~-]*\/)?[a-z0-9~-][\w.~-]*$/i

export function isPackageName(name: string): boolean {
  return name.length <= MAX_NAME_CHARACTERS && NAME.test(name)
}

/** Package names with versions. {@link ANY_VERSION} accepts each installed version. */
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

/** Why code was not built. The names are those of the API without their prefix `error_`. */
export interface BuildError {
  code: string
  message: string
  details?: Readonly<Record<string, unknown>>
}

/** Undefined without findings. The first finding gives the code. */
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

/** Other names of packages in code. The list of `node-bt` has an old version of the client under its own name. */
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

/** The listed packages whose names the code has in quotes. Only these are linked, because linking takes time. */
export function findListed(code: string): Versions {
  const named = LISTED.filter((name) =>
    [`'${name}'`, `"${name}"`, `\`${name}\``].some((each) => code.includes(each)),
  )
  return Object.fromEntries(named.map((name) => [name, ANY_VERSION]))
}
