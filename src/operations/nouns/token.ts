import * as association from '../token/association.js'
import * as byCursor from '../token/by-cursor.js'
import { detokenizeTokens } from '../token/detokenize.js'
import { generateTokens } from '../token/generate.js'
import { importTokens } from '../token/import.js'
import { searchTokens } from '../token/search.js'
import * as token from '../token/token.js'
import { tokenize } from '../token/tokenize.js'

export const noun = {
  name: 'token',
  summary: 'Store values and get tokens for them',
  operations: [
    token.createToken,
    token.listTokens,
    byCursor.listTokensByCursor,
    token.getToken,
    token.updateToken,
    token.deleteToken,
    searchTokens,
    byCursor.searchTokensByCursor,
    tokenize,
    detokenizeTokens,
    importTokens,
    association.linkTokens,
    association.unlinkTokens,
    association.createChild,
    association.listChildren,
    generateTokens,
  ],
}
