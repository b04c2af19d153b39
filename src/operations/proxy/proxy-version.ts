import type { ProxyTransform } from '../../domain/proxy/transform.js'
import type { RuntimeOptions } from '../../domain/reactor/runtime.js'
import { settled } from '../../domain/reactor/state.js'
import type { ProxyRecord, ProxyVersion } from '../../domain/records/records.js'

export const VERSIONED = [
  'configuration',
  'request_transforms',
  'response_transforms',
] as const satisfies readonly (keyof ProxyVersion)[]

export function runningProxy(record: ProxyRecord, now: number): ProxyRecord {
  return settled<ProxyVersion, ProxyRecord>(record, now, VERSIONED)
}

export function runtimeOf(transform: ProxyTransform): RuntimeOptions | undefined {
  return 'code' in transform ? transform.options?.runtime : undefined
}

export function builtCodeOf(transform: ProxyTransform) {
  return { code: 'code' in transform ? transform.code : undefined, runtime: runtimeOf(transform) }
}
