// Package streamed has the parts that the ingresses over TCP share: a FrameSplitter for received audio in
// pieces of any size, and a Sender for frames to a connection that may be slow.
//
// It does not depend on the wire format of frames. A Sender has one goroutine, which Close ends; when
// more than one second of audio is queued, the oldest frame is dropped. A FrameSplitter is for the
// goroutine that reads the connection.
package streamed
