// Package pbx places calls on Trunkline's own SIP: a back-to-back user
// agent that rings the owner's phones, dials the destination once one of them
// answers, and joins the two. It also connects the ordinary calls that phones
// and trunks make, and makes the call records and events of all of them.
//
// It refuses to transcode, but between the two laws of G.711: two phones that
// have no codec in common do not get a call (INCOMPATIBLE_DESTINATION). It has
// no transfer, no voicemail and no forwarding.
//
// Where a click to call goes: when it begins with Config.LocalPrefix, to the
// localcall.Destination; else to the user of the account with that extension, all
// phones at once, the first that answers wins; else to the trunk; else nowhere
// (UNALLOCATED_NUMBER). An ordinary call goes the same way, but those to the
// LocalPrefix go to whom the server was given for it, and those that came from
// a trusted network reach users only.
//
// Goroutines: one for each call, one for each phone that is being rung, one for
// the ring tone that an owner hears. Cancel, a hang-up and Run's end reach them
// through their context. Run has a worker for each lane of the outbox. Follow
// works in its caller's.
//
// When it is full: calls at Config.MaxCalls, or no media port: Originate says
// fault.KindUnavailable, an ordinary call gets 503. Records that cannot be
// published wait in the outbox, whose lanes are bounded: above that they are
// counted, logged and lost; signalling never waits for them.
//
// Shut down: when the ctx of Run or Follow ends no call is taken any more,
// those that are up end with NORMAL_TEMPORARY_FAILURE, and both return when the
// calls are over and their progress is reported (Follow) and their records
// published (Run), or after Config.DrainTimeout. The sip.Server must run
// longer than both.
//
// Lock order: bridge.mu, then the locks of sip and rtp. Driver.mu and call.mu
// are held for map and field accesses only.
package pbx
