// Package asterisk connects a live feed to an Asterisk manager interface.
//
// # Events
//
// An event becomes one record of format asterisk.ami with its keys as on the wire (a repeated key is an
// array) and, if Asterisk sends no Timestamp, the time at which it was read. A Cdr event becomes one
// record of format asterisk.cdr. The session drops events that do not become messages (CEL, variables,
// bridges), unless the setting events lists them and the account is known.
//
// # Accounts
//
// Asterisk has no tenants. The names that map to an account are those of the event's channel (the
// variable of account_variable, its account code), its queue, and its context. Most events of a call
// have none of them: the session stores the account by Linkedid and Uniqueid. The first events of a
// call arrive before its account is known; they are held until it is, for at most holdTime.
//
// # Snapshots
//
// A snapshot has the members of QueueStatus, the agents of app_agent_pool, the channels of
// CoreShowChannels and the contacts of PJSIPShowContacts. Queue reloads, and some names that are not
// UTF-8, produce no events: the feed's periodic resync finds them. The session requests one after a
// Reload, and when Asterisk has booted.
//
// # Broken events
//
// A caller's number may contain line breaks, which split an event. The session drops that event and
// following ones that a caller may have forged with them, and requests a resync.
//
// # Limits
//
// At most maxHeldEvents events are held, and the accounts of at most maxCachedIDs calls are stored in each of
// two generations. The package starts no goroutine besides the connection's reader.
//
// # Files
//
// Read platform.go (the subscription), then session.go.
//
//   - platform.go, session.go: a switch, and a connection to it
//   - ami_event.go: an event as a record, and what it is about
//   - account_lookup.go, hold_until_account_known.go: the account of an event
//   - wrap_up.go: the wrap-ups of agents, of which Asterisk tells no end
//   - snapshot.go, recent_events.go: the switch's state, and what its lists do not have
//   - event_class_rights.go, account_check.go: what the user of manager.conf may not read, and which channels and
//     members have no account, as notes of a snapshot
//   - agent_and_call_commands.go: actions on agents and calls
package asterisk
