// Package freeswitch places click-to-call calls on a FreeSWITCH, over its event
// socket: the owner's phone rings first, and once it is answered the switch
// dials the destination through a loopback and joins the two.
//
// A value with a character that could end it in the originate command (a quote, a comma, a brace, a
// line break, an unquoted blank) is refused. The job's id is derived from the call's id, and every
// channel has it in a tag, so that a later process finds the calls of an earlier one.
//
// # The legs of a call
//
// The owner's leg has interaction_id and account_id. The loopback's legs and the destination's leg have
// these too, and origination_call_id and sip_h_X-svc_call_type, so that mod_json_cdr's records become
// correct rows. loopback_bowout is off, so the loopback's legs stay until the end. The tag is
// presence_data, "trunkline:owner:JOB" or "trunkline:destination:JOB": it is in every event of a
// channel and in "show channels".
//
// All phones of a user ring, each on a leg with the owner's tag. The command therefore sets no channel
// id (origination_uuid): the switch would refuse the second leg as a duplicate, and only one phone
// would ring.
//
// # Queries after a connect
//
// After each connect the driver queries the switch's domain (global_getvar domain) and its
// sessions-per-second (status, repeated at each periodic comparison). It dials an owner in
// Config.Domain or, if that is "", in the account's domain or the switch's own, depending on which of
// them has the owner in the switch's directory (user_exists). Calls are started no faster than
// sessions-per-second allows; the log and metrics have both values.
//
// # How a call ends
//
// After the owner has answered, a call ends with the hangup of the owner's leg and with its cause or,
// if that is NORMAL_CLEARING, the destination's cause in originate_disposition. Before, it ends with
// the job's -ERR; the end of one phone's leg does not count while another phone rings. A call that ends
// because comparisons find no channel gets the cause from its earlier events, else
// NORMAL_TEMPORARY_FAILURE.
//
// # Subscription
//
// Filters select the events of channels with our tag and the results of originates. Event-Sequence does not
// show missed events: FreeSWITCH numbers events when it creates them, and creates some (REQUEST_PARAMS,
// CHANNEL_DATA) that it never sends. Comparisons find them: one command, which lists all channels with our
// tag.
//
// # Limits
//
// A call above the switch's sessions-per-second waits in Originate, at most queueTimeout. If it would
// have to wait longer, it is refused at once (fault.Unavailable).
//
// # Following calls
//
// Package eventdriver describes how calls are followed, its goroutines, and the limit of calls.
//
// # Files
//
// Read driver.go, then call_state.go and apply_events.go.
//
//   - driver.go, config.go, settings.go, metrics.go: the platform for origination/eventdriver;
//     settings and metrics
//   - connection.go, apply_events.go, channel_list.go: the event socket: a connection, what its events change in
//     a call, listing channels
//   - call_state.go, cause.go: what is known of one call and its legs, and its end
//   - originate_command.go, safe_text.go: the originate command, and which texts may stand in it
//   - switch_domain.go, rate_limit.go: what is asked of the switch: domains, and how many calls a second
//     it takes
package freeswitch
