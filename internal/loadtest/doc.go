// Package loadtest is the load that Trunkline is measured with: many cheap
// WebSocket subscribers that check the received events, a source of numbered events,
// and a Trail that checks the events of a topic. The folder requests asks
// an HTTP API.
//
// A subscriber is a socket, a few hundred bytes and no goroutine: one worker
// waits for many sockets (epoll) and reads each into a buffer that all share.
// Messages are not parsed as JSON; their id and the stamp that the source has
// put into their data are found by searching for bytes. A stamp holds the
// account's number in the run, the event's number in the account and the time
// the event was due. So each subscriber checks loss, repetition and order, and
// latency includes all that the event has waited for.
//
// TLS subscribers cost the same goroutines and system calls: crypto/tls is fed
// what the worker has read and goes on where it had to stop. They cost its
// decryption, a copy, and for each connection its state and a buffer that
// grows to the largest record (16 KiB at most), which crypto/tls never gives
// back.
//
// It counts and does not judge. It neither logs in nor publishes, and imports
// only leaf packages of Trunkline. It needs Linux.
//
// Goroutines: Workers for each Load, one for each connection that is being
// opened (Dialers at most) and one for each that waits to come back; Close
// ends them all. A Source has one for each publisher, 16 by default,
// while Run runs.
//
// When it is full: a subscriber that cannot keep up slows its worker, which
// its own CPU usage shows; nothing is queued but in the kernel. A Source whose
// sink is slow falls behind its schedule, and latencies tell.
//
// Lock order: worker.mu, then Load.mu.
package loadtest
