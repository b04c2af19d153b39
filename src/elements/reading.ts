/** The knowledge of a field about the text in its input. */

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
  /** What a check of the field reports. Undefined if the field has no fault. */
  fault: FieldFault | undefined
  card?: CardDetails
}
