// Package kazoo places calls through Kazoo's HTTP API (Crossbar): one
// clicktocall document for each user, made at their first call, and its
// connect, which does not wait for an answer.
//
// It refuses to fail because an answer carries no id: the call is placed, and
// the id is "". What Kazoo refuses (4xx) is fault.Refused; what cannot be asked
// (no connection, no answer in time, 5xx, 429) is fault.Unavailable.
//
// The legs' records and events are Kazoo's own and come through Kafka. How far
// a call has come is asked every Config.PollEvery, for the calls that Kazoo
// gave an id: there is a channel (ringing_user), it is answered (user_answered),
// it has another leg beside the loopback's (bridged), it is gone (ended, with
// the cause that the clicktocall's history gives, else NORMAL_UNSPECIFIED).
// Kazoo tells nothing in between, so dialling is left out, and what comes and
// goes between two polls is not seen.
//
// Follow has one goroutine that polls, and at most pollers at once while it
// does; they end with its context. Nothing queues: how many calls there are is
// bounded by the room above. Lock order: only one lock is held at a time.
package kazoo
