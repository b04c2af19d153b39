/** Makes a network token for the examples. Its output is the id. */
export const CREATE_EXAMPLE = '"$(coffer network-token create --token-id card-1 -o id)"'
