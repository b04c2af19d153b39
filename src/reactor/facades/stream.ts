/** `stream`: the package `readable-stream`, which is made from the streams of Node. */
import stream from 'readable-stream/lib/stream.js'

export default stream
