// Package asterisk places click-to-call calls on an Asterisk, over its manager interface (AMI): the
// owner's phone rings first, and once it is answered Asterisk dials the destination through a Local
// channel and joins the two.
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
// # The rest
//
// Package eventdriver says how calls are followed, what may be missed, which goroutines run and what
// happens when it is full. The list of channels is that of CoreShowChannels.
package asterisk
