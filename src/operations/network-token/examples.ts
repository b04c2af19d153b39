/** Creates a network token, and prints its id. */
export const CREATE_EXAMPLE = '"$(coffer network-token create --token-id card-1 -o id)"'
