// Package asterisk connects a live feed to an Asterisk manager interface.
//
// # Events
//
// An event becomes one record of format asterisk.ami with its keys as on the wire (a
// repeated key is an array) and, where Asterisk writes no Timestamp, the time at which it
// was read. A Cdr event becomes one record of format asterisk.cdr. Events that no message
// is made of (CEL, variables, bridges) are left out, unless the setting events asks for
// them and an account is known.
//
// # Accounts
//
// Asterisk has no tenants. The names that are mapped to an account are those of the
// event's channel (the variable of account_variable, its account code), its queue, and its
// context. Most events of a call have none of them: the account is learned by Linkedid and
// Uniqueid. The first events of a call arrive before its account is known; they are held
// back until it is, for at most holdTime.
//
// # Truth
//
// A snapshot has the members of QueueStatus, the agents of app_agent_pool, the channels of
// CoreShowChannels and the contacts of PJSIPShowContacts. Queue reloads, and some names that
// are not UTF-8, produce no events: a resync is requested every resyncInterval, after a
// Reload, and when Asterisk has booted.
//
// # Broken events
//
// A caller's number may contain line breaks. An event that is broken by them is dropped with
// those after it that may be the caller's own, and a resync is requested.
//
// # Limits
//
// At most maxHeld events are held back and maxLearned calls are remembered in each of two
// generations. The package starts no goroutine besides the connection's reader.
package asterisk
