// Package fanout is the events channel: it follows the normalized topic and
// pushes each message to every subscriber whose token admits it.
//
// It refuses to parse messages: matching uses record headers, and what a
// client gets is the record's value byte for byte. It keeps no state that
// matters after a crash: a subscriber that resumes finds everything in Kafka,
// on any node.
//
// # The way of a message
//
// One stream goroutine a partition reads a batch of records, builds each
// message's WebSocket frame once (batch.go), keeps the batch in a bounded ring,
// finds the matching subscribers in the index and puts a reference on their
// queues. The connections that were idle go to a few writers, which send what
// waits for a connection in one write (writers.go). A subscriber that resumes is
// fed by a replay of its own, from shared chunks of Kafka (history.go) and from
// the ring, merged by id over all partitions, until it has reached every
// stream; then the streams take over in all partitions at once (replay.go).
//
// # Goroutines and who stops them
//
//   - one stream for each partition while anybody is subscribed: the follower;
//   - GOMAXPROCS writers, one sweeper (pings, silence, expiry, cursors), one
//     for permissions, one for presence: Run, when its context ends;
//   - one fold for each partition, which keeps the floor for snapshots
//     (fold.go), and one that measures them: Run, when its context ends;
//   - one reader for each WebSocket, and one waiter while its socket is full:
//     they end with the connection;
//   - one replay for each subscriber that is behind: ends with it.
//
// # When it is full
//
// Chunks of history are bounded in bytes and dropped when nobody replays; a
// replay that waits holds none. A subscriber's queue is bounded in bytes; beyond, it is closed with 4008 and
// nobody else notices. The writers being behind slows the streams, never loses
// anything: Kafka is the buffer.
//
// # Lock order
//
// index.mu, traces.mu, subscriber.mu, socket.mu; each may be skipped, none may
// be taken the other way round. stream.mu is taken after index.mu, and nothing
// after it.
package fanout
