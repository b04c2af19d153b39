import stream from 'node:stream'

export default stream.promises
