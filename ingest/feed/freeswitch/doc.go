// Package freeswitch is the live feed of FreeSWITCH: the events of its event socket
// (telephony/esl) as they came, and its truth on demand.
//
// # Events
//
// A session subscribes to events in JSON and passes them on byte for byte; bytes
// that are not UTF-8, such as a caller's name in Latin-1, become U+FFFD. HEARTBEAT,
// SHUTDOWN and API are always subscribed to, for the session itself, and stored only
// where the setting events lists them.
//
// # Holes
//
// Event-Sequence numbers all events of the switch, also those not subscribed to, so
// that gaps are normal, and events arrive out of its order. A hole is seen
//
//   - with "ALL" in events, where more than 32 numbers in a row are missing
//     (esl.Sequence);
//   - where HEARTBEATs are missing between two others.
//
// The switch drops events of a connection only when 100,000 wait for a client that
// does not read, and then closes it. This client ends the connection itself long
// before, with 20,000 events or 64 MiB unread, so that a loss within a connection is
// not expected; what is lost between two connections is found by the resync that
// follows each connect.
//
// # Changes without an event
//
// mod_callcenter has no event for tiers, nor for an agent that is deleted. They
// change by the command callcenter_config, which itself is an API event: it requests
// a resync.
//
// A caller who hangs up while mod_callcenter connects an agent has no member-queue-end:
// the bridge-agent-end with CC-Agent-Bridged false requests a resync, which ends the call.
//
// # Accounts
//
// An event that names no tenant belongs to the account of its agent's queues (by the
// tiers) or contact, else to the account that the event itself names (account_id, a
// name that the feed's rules and the domains precede), else to that of its leg, of the leg that began the call, or of
// the leg at the other end, where this connection has seen one of them.
//
// # Answers
//
// The core's tables of channels and registrations are written up to a second after
// the events. A snapshot is not asked for before tableLag after the connect, and names
// the objects with an event within tableLag before it (feed.Snapshot.Unsettled).
// Channels without a domain in the answer are asked for their variables one by one.
//
// # Goroutines
//
// None but those of telephony/esl. An idle connection is probed by Read.
package freeswitch
