// Package pbx is Trunkline's own private branch exchange: a back-to-back user agent over telephony/sip
// and telephony/rtp. It implements origination's driver: it rings the owner's registered phones, dials
// the destination once one of them is answered, and connects the two. It also connects the ordinary
// calls of phones and trunks, and creates the call records and events of all of these.
//
// If this is your first change, read driver.go (its interfaces), click_to_call.go (click to call),
// incoming_call.go (an ordinary call), ring_group.go (several phones at once) and cdr_builder.go (a leg's
// record).
//
// It does not transcode, except between the two laws of G.711: a call between phones without a common
// codec fails with INCOMPATIBLE_DESTINATION. It has no voicemail and no forwarding, and declines a
// phone's REFER.
//
// A click-to-call call goes to the localcall.Destination if its destination begins with
// localcall.Prefix; else to the user of the account with that extension, on all phones at once, of
// which the first to answer wins; else to the trunk; else it fails with UNALLOCATED_NUMBER. An
// ordinary call is routed the same way, except that the server has its own handler for localcall.Prefix,
// and that a call from a trusted network reaches users only.
//
// Admission admits or refuses a phone's calls and an AI provider's transfers. A call above a limit, or
// to a blocked number, gets 403 (FACILITY_REJECTED).
//
// Goroutines: one per call, one per ringing phone, and one per ring tone that is played. Cancel, a
// hang-up and the end of Run stop them through their context. Run has one worker for each shard of the
// outbox. Follow runs in its caller's goroutine.
//
// Limits: at Config.MaxCalls, or without a free media port, Originate returns fault.KindUnavailable
// and an ordinary call gets 503. Records that cannot be published wait in the outbox, whose shards are
// bounded: records above the bound are counted, logged and lost. Signalling never waits for them.
//
// Shutdown: when the context of Run or Follow ends, new calls are refused and calls in progress end
// with NORMAL_TEMPORARY_FAILURE. Follow returns when the calls have ended and their progress is
// reported, Run when their records are published; both return after drainTimeout at the latest.
// The sip.Server must run longer than both.
//
// Lock order: bridge.mu, then the locks of sip and rtp. Driver.mu is held only while its map and
// fields are accessed.
//
// # Files
//
// Read driver.go, then click_to_call.go and incoming_call.go.
//
//   - driver.go, config.go, settings.go, metrics.go: the driver, settings, metrics
//   - click_to_call.go, incoming_call.go: a call that a user orders, that comes from a phone or trunk
//   - connect_ai_destination.go, transfer_from_ai_destination.go: a call that goes to an AI session, and
//     from there to another destination
//   - call.go, progress_queue.go: a call and its progress
//   - find_phones.go, ring_group.go: where a number leads, and ringing several phones
//   - call_side.go, bridge.go, answer_offer.go, ring_tone.go, record_call.go: the media of a leg, of two, new
//     offers, the ring tone, recordings
//   - cdr_builder.go, cdr_and_event_outbox.go, registration_events.go: call records and events, and their way to
//     Kafka
package pbx
