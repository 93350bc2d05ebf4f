// Package kazoo places calls through Kazoo's HTTP API (Crossbar): it creates one clicktocall document
// per user at the first call, and requests its connect, which does not wait for an answer.
//
// An answer without an id is not an error: the call is placed, and its id is "". If Kazoo refuses
// (4xx), the error is fault.Refused; if it cannot be asked (no connection, timeout, 5xx, 429), it is
// fault.Unavailable.
//
// The records and events of the legs are Kazoo's own and arrive through Kafka. The progress of calls
// with an id from Kazoo is polled every Config.PollEvery: there is a channel (ringing_user), it is
// answered (user_answered), it has another leg besides the loopback's (bridged), it is gone (ended,
// with the cause in the clicktocall's history, else NORMAL_UNSPECIFIED). Kazoo reports nothing in
// between, so dialling is omitted, and changes between two polls are not seen.
//
// Follow has one goroutine that polls, with at most pollers concurrent requests; they end with its
// context. Nothing is queued: package origination bounds the number of calls. Lock order: only one
// lock is held at a time.
package kazoo
