// Package freeswitch places click-to-call calls on a FreeSWITCH, over its event
// socket: the owner's phone rings first, and once it is answered the switch
// dials the destination through a loopback and joins the two.
//
// Nothing that could end a value in the originate command (a quote, a comma, a
// brace, a line break, a blank where none belongs) is ever sent. The job's id is
// made from the call's, and every channel carries it in a tag, so that a later
// process finds the calls of an earlier one.
//
// # The legs of a call
//
// The owner's leg has interaction_id and account_id. The loopback's legs and the
// destination's have these too, and origination_call_id and
// sip_h_X-svc_call_type: mod_json_cdr's own records then make the right rows.
// loopback_bowout is off, so the loopback's legs stay until the end. The tag is
// presence_data, "trunkline:owner:JOB" or "trunkline:destination:JOB": it is in
// every event of a channel and in "show channels".
//
// A user with several phones is rung on all, each on a leg with the owner's tag.
// So no leg gets a channel id of our making (origination_uuid): the switch would
// refuse the second as a duplicate, and only one phone would ring.
//
// # What it asks the switch first
//
// With each connection, its own domain (global_getvar domain) and its
// sessions-per-second (status, again at each periodic look). An owner is dialled
// in Config.Domain; where that is "", in the account's domain or the switch's own,
// whichever its directory has the owner in (user_exists). Calls are started no
// faster than the sessions-per-second allow; the log and metrics have both.
//
// # How a call ends
//
// Once the owner has answered, with the hangup of the owner's leg; its cause, or
// where that is NORMAL_CLEARING, why the destination was not reached (its
// originate_disposition). Before that with the job's -ERR: a phone that does not
// answer is not the end while another one rings. A call whose channels are found
// to be gone ends with what is known of the cause, else
// NORMAL_TEMPORARY_FAILURE.
//
// # What the switch sends
//
// Its filters let through the events of channels with our tag and the results of
// originates, and nothing of the rest of its traffic; with AllEvents it sends
// everything.
//
// Event-Sequence alone does not show what was missed: FreeSWITCH numbers events when they are
// made, and makes some (REQUEST_PARAMS, CHANNEL_DATA) that it never sends, so
// every call leaves holes, whatever is subscribed to. With AllEvents, a run of
// holes longer than such a one causes a comparison at once. A comparison is one
// command, which asks for all channels with our tag.
//
// # When it is full
//
// A call over the switch's sessions-per-second waits in Originate for its turn, at most
// queueTimeout, and is refused at once (fault.Unavailable) when that would not be
// enough.
//
// # The rest
//
// Package eventdriver says how calls are followed, which goroutines run, and what
// happens when there are too many calls.
package freeswitch
