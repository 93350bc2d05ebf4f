// Package streamed is what the ingresses over TCP share: audio that comes in
// pieces of any size, and frames that go out on a socket which may be slow.
//
// It refuses to know what the frames look like on the wire. A Sender has one
// goroutine, which its Close ends; when more than a second of audio waits, the
// oldest frame is dropped. A Receiver belongs to the connection's reader.
package streamed
