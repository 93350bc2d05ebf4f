// Package asterisk places click-to-call calls on an Asterisk, over its manager interface (AMI): the
// owner's phone rings first, and once it is answered Asterisk dials the destination through a Local
// channel and joins the two.
//
// # The legs of a call
//
// The owner's channel has the unique id "<call id>-owner" (ChannelId). If the owner is dialled through
// a Local channel, the second channel has "<call id>-owner-2" (OtherChannelId). Both are chosen before
// anything rings. Asterisk sets the owner's id as the Linkedid of all channels of the call, so that
// events and call records are recognized without a change of the dialplan (package format/asterisk
// extracts the call id from it). All channels also inherit the variable __origination_call_id, for
// manager.conf's channelvars and for dialplans.
//
// A Local channel is dialled with the option /n. Without it Asterisk removes the channel from the call
// when the destination answers, and its call record would end there.
//
// # How a call ends
//
// After the owner has answered, a call ends with the Hangup of the owner's channel and with its cause
// or, if that is normal clearing, the cause of the destination's DialStatus. Before, it ends with the
// OriginateResponse that has our ActionID; its Uniqueid is ignored, because a Failure may have the id
// of an existing channel. The Hangup of an unanswered owner's channel has the cause. A call that ends
// because comparisons find no channel gets the cause from its earlier events, else
// NORMAL_TEMPORARY_FAILURE.
//
// # Subscription
//
// The login subscribes to the class call only. With the write privilege system, the driver adds a
// filter for the events of our calls (action Filter); without it, other events of the class are read
// and dropped.
//
// # Following calls
//
// Package eventdriver describes how calls are followed, missed events, goroutines and limits. The list
// of channels is that of CoreShowChannels.
package asterisk
