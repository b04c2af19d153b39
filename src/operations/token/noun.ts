import * as association from './association.js'
import * as byCursor from './by-cursor.js'
import { detokenizeTokens } from './detokenize.js'
import { generateTokens } from './generate.js'
import { importTokens } from './import.js'
import { searchTokens } from './search.js'
import * as token from './token.js'
import { tokenize } from './tokenize.js'

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
