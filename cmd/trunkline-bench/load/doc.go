// Package load generates the load that Trunkline is measured with: many cheap WebSocket
// subscribers that check the received events, a source of numbered events, and a TopicChecker that
// checks the events of a topic.
//
// A subscriber is a socket, a few hundred bytes and no goroutine: one socketReader waits for many
// sockets (epoll) and reads each into a shared buffer. It does not parse messages as JSON, but
// searches the bytes for the id and for the stamp that the source has written into the data. A
// stamp holds the number of the account in the run, the number of the event in the account and
// the event's due time. So each subscriber checks for loss, repeats and disorder, and latencies
// include every wait since the due time.
//
// TLS subscribers need the same goroutines and system calls: the reader feeds its bytes to
// crypto/tls, which returns when they are used up and continues at the next call. They also cost
// decryption, a copy, and for each connection its state and a buffer that grows to the largest
// record (at most 16 KiB) and that crypto/tls never releases.
//
// It counts; its caller evaluates the counts. It neither logs in nor publishes, and imports
// only leaf packages of Trunkline. It needs Linux.
//
// Goroutines: Workers for each Load, one for each connection attempt (at most Dialers) and one
// for each subscriber that waits to resume; Close ends all of them. A Source has one for each
// publisher, 16 by default, while Run runs.
//
// When it is full: a subscriber that cannot keep up slows down its reader, which is visible in
// the process's CPU usage; only the kernel queues. A Source with a slow sink falls behind its
// schedule, which is visible in the latencies.
//
// Lock order: socketReader.mu, then Load.mu.
package load
