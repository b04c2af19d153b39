/** Every operation of the product, in the order that help and reference show them. */
import { createRegistry } from './registry.js'
import { createToken, deleteToken, getToken, listTokens, updateToken } from './token.js'

export const operations = [createToken, listTokens, getToken, updateToken, deleteToken]

export const registry = createRegistry(operations)
