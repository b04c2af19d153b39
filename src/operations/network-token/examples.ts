/** Makes a network token for the examples. The output of this command is the id of the network token. */
export const CREATE_EXAMPLE = '"$(coffer network-token create --token-id card-1 -o id)"'
