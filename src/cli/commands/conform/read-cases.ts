import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
import { findAsset, findFixture } from '../../../assets.js'
import type { Case } from '../../../client/conform/cases.js'

/** The build writes all cases into this file of the package. */
export const PACKED_CASES = 'cases.json.br'

export function readPackedCases(): Case[] {
  return JSON.parse(brotliDecompressSync(readFileSync(findAsset(PACKED_CASES))).toString()) as Case[]
}

/** Each title begins with the name of the file that contains the case. */
export function readCases(): Case[] {
  const folder = findFixture('operations')
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.json') && !name.endsWith('.schema.json'))
    .sort()
  return files.flatMap((file) => {
    const cases = JSON.parse(readFileSync(join(folder, file), 'utf8')) as Case[]
    return cases.map((each) => ({ ...each, title: `${file.replace('.json', '')}: ${each.title}` }))
  })
}
