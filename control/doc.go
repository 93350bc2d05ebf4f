// Package control acts on agents and calls of the platforms: it checks who may, stores the
// action, sends the command to the node that holds the platform's feed, and ties the
// platform's event to it.
//
// # An action's life
//
//	asked ─▶ sent ─▶ accepted ─▶ confirmed, by an event
//	   └────────┴──────┐  └────▶ unconfirmed, after confirmTimeout
//	                   └───────▶ refused, or unconfirmed where nobody knows
//
// The row exists before anything is sent. A node changes it from asked to sent, and only the
// node that did so sends the command: it is sent once at most, whoever asks again. Each
// change is conditional on the state before, so each end happens once, on whatever node.
//
// # Confirmation
//
// The state of agents and calls (event/state) is the fold of events. An action is confirmed
// when the entry is as the action wants it, by an event that is not older than the action. Calls of
// click to call that no feed knows are not in it: the one action on them, hang-up, is done and
// confirmed by package origination.
//
// # Goroutines, bounds and locks
//
// Run is one goroutine; it looks at the open actions every watchInterval, without any every
// sweepInterval or once one is stored here, and ends those that a killed node has left.
// Requests work in their own. An agent takes one action at a time of this service, by a
// unique index: a second one before the end of the first is refused. There
// are no locks but those of the database.
//
// # Files
//
// Read action_request.go (what is asked, and by whom) and act.go (from a request to its answer).
//
//   - service.go, metrics.go: the service, metrics
//   - action_request.go, act.go, build_command.go: a request, its way to the platform, the agent or call
//     and the command
//   - check_state.go, confirming_event.go, follow_actions.go, action_status.go: what the state permits, which
//     event shows that an action was done, the end of an action, what clients see
//   - nodes_redis.go: the way to another node
//   - actions_sql.go: the rows
package control
