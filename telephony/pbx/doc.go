// Package pbx is Trunkline's own private branch exchange: a back-to-back user agent
// over telephony/sip and telephony/rtp. It implements origination's driver: it
// rings the owner's registered phones, dials the destination once one of them is
// answered, and connects the two. It also connects the ordinary calls of phones and
// trunks, and makes the call records and events of all of these.
//
// If this is your first change, read driver.go (its interfaces), originate.go (a
// click to call), incoming.go (an ordinary call), ring.go (several phones at once)
// and cdr_builder.go (a leg's record).
//
// It refuses to transcode, except between the two laws of G.711: two phones without
// a codec in common do not get a call (INCOMPATIBLE_DESTINATION). It has no
// voicemail and no forwarding, and declines a phone's REFER.
//
// A click to call goes to the localcall.Destination when its destination begins
// with Config.LocalPrefix; else to the user of the account with that extension, all
// phones at once, the first that answers wins; else to the trunk; else nowhere
// (UNALLOCATED_NUMBER). An ordinary call goes the same way, except that the server
// has a handler of its own for the LocalPrefix, and that a call from a trusted
// network reaches users only.
//
// Goroutines: one for each call, one for each phone that is being rung, one for the
// ring tone that an owner hears. Cancel, a hang-up and the end of Run stop them
// through their context. Run has one worker for each shard of the outbox. Follow
// works in its caller's goroutine.
//
// When it is full: at Config.MaxCalls, or without a free media port, Originate
// returns fault.KindUnavailable and an ordinary call gets 503. Records that cannot
// be published wait in the outbox, whose shards are bounded: records over that are
// counted, logged and lost; signalling never waits for them.
//
// Shutdown: when the context of Run or Follow ends, no call is taken any more and
// calls that are up end with NORMAL_TEMPORARY_FAILURE. Both return once the calls
// are over and their progress is reported (Follow) and their records are published
// (Run), or after Config.DrainTimeout. The sip.Server must run longer than both.
//
// Lock order: bridge.mu, then the locks of sip and rtp. Driver.mu is held for
// accesses to its map and fields only.
package pbx
