/** The module `stream`: the npm package `readable-stream`, which contains the streams of Node. */
import stream from 'readable-stream/lib/stream.js'

export default stream
