// Package freeswitch is the live feed of FreeSWITCH: the unchanged events of its event socket
// (telephony/esl), and snapshots of its state.
//
// # Events
//
// A session subscribes to events in JSON and returns them byte for byte, except that bytes that are not
// UTF-8, such as a caller's name in Latin-1, become U+FFFD. It always subscribes to HEARTBEAT, SHUTDOWN
// and API for its own use, and returns them only if the setting events lists them.
//
// # Holes
//
// Event-Sequence numbers all events of the switch, including those that are not subscribed to, so that
// gaps are normal, and events arrive out of this order. A session detects a hole
//
//   - with "ALL" in events, if more than 32 consecutive numbers are missing (esl.LossDetector);
//   - if HEARTBEATs are missing between two others.
//
// The switch drops events of a connection only when 100,000 wait for a client that does not read, and
// then closes it. This client closes the connection long before, at 20,000 events or 64 MiB unread, so
// that no loss within a connection is expected. The resync after each connect finds changes between two
// connections.
//
// # Changes without an event
//
// mod_callcenter sends no event for tiers, nor for a deleted agent. They change by the command
// callcenter_config or a reload of the module, for which the switch sends an API event: that event
// requests a resync, whose snapshot is requested tableLag later. What changes in another way, such as in
// the module's database, is found by the feed's periodic resync.
//
// mod_callcenter sends no event for a caller who waits again because the agent hung up while being
// connected: the bridge-agent-end with CC-Agent-Bridged false requests a resync.
//
// # Accounts
//
// The account of an event is, in this order: that of a name in the event which the feed's rules or the
// domains map to an account; that of its agent's queues (by the tiers) or contact; the account_id in
// the event; that of its leg, of the leg that began the call, or of the other leg, if this connection
// has received an event of it.
//
// # Snapshots
//
// The core's tables of channels and registrations are written up to a second after the events. A
// snapshot is requested at the earliest tableLag after the connect, and lists the objects with an event
// within tableLag before it (feed.Snapshot.RecentlyChanged). For channels without a domain in the response,
// the session queries the variables one by one.
//
// # Goroutines
//
// The package has no goroutines besides those of telephony/esl. Read probes an idle connection.
//
// # Files
//
// Read platform.go, then session.go.
//
//   - platform.go, session.go, subscribed_events.go: a switch; a connection to it; the events to subscribe to
//   - account_lookup.go, agent_account_names.go: the account of an event; by which names an agent is one of an account
//   - recent_ids.go, heartbeat_gaps.go: objects with events that a snapshot may not have yet; missing
//     HEARTBEATs
//   - snapshot.go, api_response.go: the switch's state, and its answers to commands
//   - agent_and_call_commands.go: actions on agents and calls
package freeswitch
