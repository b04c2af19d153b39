/**
 * Lets the compiler check that the fields of Coffer have the interface of the npm package `@basis-theory/web-elements`.
 */
import type * as Hosted from '@basis-theory/web-elements'
import type { CardElement, DateElement, NumberElement, TextElement } from './element.js'
import type { Services } from './services.js'

/** A page can give brands of its own, so a brand is any text. */
type WithoutCard<Element> = Omit<Element, 'cardMetadata'>

type Fits<Wanted, Given extends Wanted> = Given

export type Contract = [
  Fits<Hosted.ITextElement, TextElement>,
  Fits<WithoutCard<Hosted.ICardNumberElement>, NumberElement>,
  Fits<Hosted.ICardExpirationDateElement, DateElement>,
  Fits<Hosted.ICardVerificationCodeElement, TextElement>,
  Fits<WithoutCard<Hosted.ICardElement>, CardElement>,
  Fits<Omit<Hosted.BasisTheoryElements, 'createElement'>, Services>,
]
