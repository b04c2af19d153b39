/** The state that a field derives from the text of its input. */

export type FieldFault = 'incomplete' | 'invalid'

export interface CardDetails {
  cardBrand: string
  cardLast4?: string
  cardBin?: string
}

export interface Reading {
  /** The value that a request contains. The page never gets this value. */
  value: string
  isEmpty: boolean
  isComplete: boolean
  isValid: boolean
  /** Present only if the field has a mask. */
  isMaskSatisfied?: boolean
  /** Undefined if the field has no fault. */
  fault: FieldFault | undefined
  card?: CardDetails
}
