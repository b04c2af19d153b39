import * as formula from './formula.js'
import { checkFormulaCode, installFormulas } from './owner-formulas.js'

export const noun = {
  name: 'formula',
  summary: 'Define the code that reactors run',
  operations: [
    formula.createFormula,
    formula.listFormulas,
    formula.getFormula,
    formula.updateFormula,
    formula.deleteFormula,
    checkFormulaCode,
    installFormulas,
  ],
}
