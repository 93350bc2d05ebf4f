// Package channelclient is a client of the events channel (docs/channel.md): it
// logs in, connects, delivers every event once, and resumes after a disconnect.
//
// It refuses to know what an event means: messages are bytes with an id. Run
// works in the caller's goroutine; one more, which ends before Run does,
// closes the socket when the context ends. Nothing is queued: a slow deliver
// slows the reading, and the server then closes with 4008. What is remembered
// to drop repeats is bounded (see recent).
package channelclient
