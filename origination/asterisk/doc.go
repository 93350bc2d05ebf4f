// Package asterisk places click-to-call calls on an Asterisk, over its manager interface (AMI): the
// owner's phone rings first, and once it is answered Asterisk dials the destination through a Local
// channel and joins the two.
//
// Every state that it reports was seen in Asterisk's events or in its list of channels. It keeps
// nothing that must survive a restart: all ids are made from the call's, so that a later process finds
// the calls of an earlier one.
//
// # The legs of a call
//
// The owner's channel has the unique id "<call id>-owner" (ChannelId), and where the owner is dialled
// through a Local channel its other side has "<call id>-owner-2" (OtherChannelId). Both are known
// before anything rings. Asterisk gives the owner's id to all channels that the call makes, as their
// Linkedid: events and call records are recognized by it, without a change of the dialplan (package
// format/asterisk finds the call id in it). The variable __origination_call_id goes to all channels
// too, for manager.conf's channelvars and for dialplans.
//
// A Local channel is dialled with the option /n. Without it Asterisk removes the channel from the call
// when the destination answers, and its call record would end there.
//
// # How a call ends
//
// Once the owner has answered, with the Hangup of the owner's channel. Its cause is the reason, or
// where that is no more than normal clearing, the DialStatus of the destination. Before that, with the
// OriginateResponse that has our ActionID; its Uniqueid is not trusted, because a Failure may name a
// living channel. The Hangup of an unanswered owner's channel gives the cause. A call whose channel is
// found to be gone ends with what is known of the cause, else NORMAL_TEMPORARY_FAILURE.
//
// # What Asterisk sends
//
// The login asks for the class call alone. A user with the write privilege system gets a filter for
// our calls' events (Filter); without that privilege the rest of the class is read and dropped.
//
// # What may be missed, and how it is found
//
// AMI sends nothing of what happened while a client was away. After each connect, every AuditEvery and
// when calls were taken over, the driver lists all channels (CoreShowChannels) and compares. That
// tells states that were missed, and calls that are gone; a call has only ended this way when two
// comparisons, GoneAfter apart, found neither its owner's channel nor an event of it.
//
// # Goroutines and who stops them
//
// Follow works in the caller's goroutine: it connects, reads events, compares and reports, so that
// progress is in order. Hang-ups that events or comparisons demand each have a goroutine, which ends
// with the response or the connection; Follow closes the connection and waits for them.
//
// # When it is full
//
// At MaxCalls unfinished calls Originate refuses (fault.Unavailable). A report that takes long makes
// events wait; beyond telephony/ami's bounds the connection is given up and made again, and the
// comparison after that finds what was missed.
//
// # Lock order
//
// Driver.mu alone; no action is sent and nothing reported while it is held.
package asterisk
