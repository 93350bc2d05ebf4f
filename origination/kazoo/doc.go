// Package kazoo places calls through Kazoo's HTTP API (Crossbar): it creates one clicktocall document
// per user at the first call, and requests its connect, which returns before the owner answers.
//
// A response without an id is not an error: the call is placed, and its id is "". If Kazoo refuses
// (4xx), the error is fault.Refused; without a usable response (no connection, timeout, 5xx, 429), it
// is fault.Unavailable.
//
// The records and events of the legs are Kazoo's own and arrive through Kafka. The progress of calls
// with an id from Kazoo is polled every Config.PollEvery: the channel exists (ringing_user), is
// answered (user_answered), has another leg besides the loopback's (bridged), or no longer exists
// (ended, with the cause in the clicktocall's history, else NORMAL_UNSPECIFIED). Kazoo reports no other
// states, so dialling is omitted, and changes between two polls are not observed.
//
// Follow has one goroutine that polls, with at most pollers concurrent requests; they end with its
// context. Nothing is queued: package origination bounds the number of calls. Lock order: a
// call's lock, which is held during requests, and Driver.mu are never held together.
package kazoo
