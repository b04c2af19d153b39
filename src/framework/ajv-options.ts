/** How validators are compiled; apart from `validate.ts` because they do not exist before they are built. */
export const AJV_OPTIONS = {
  strict: true,
  // Safe because every array and map of our schemas is bounded (the registry sees to it) and so is the body.
  allErrors: true,
  // Otherwise `required: ['toString']` would hold of any object.
  ownProperties: true,
  coerceTypes: false,
  removeAdditional: false,
} as const
