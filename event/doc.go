// Package event defines the wire formats that all packages share: topics, record
// headers, the message of cc.evt, the call record row, event ids, and positions
// in the raw log.
//
// It has no I/O, no goroutines and no state, and imports no other package of
// this module.
//
// # Files
//
// Read message.go and facts.go: a message and what it says.
//
//   - topics_and_headers.go: the names of the topics and of the headers of their records
//   - message.go, event_type.go, facts.go, event_name.go, state_name.go, millis.go: the message, its type, its
//     facts, their names of events and states, their durations
//   - name_set.go, type_set.go: which names and types a subscriber has selected
//   - id.go, identity_on_platform.go, raw_log_position.go: ids of events, identities that drop repeats, positions in
//     the raw log
//   - account_id.go, account_partition.go: ids of accounts, and in which partitions an account is
//   - cdr.go, cdr_repair.go: the fields of a call record, and repairs of them
//   - cloudevent.go: attributes of CloudEvents
package event
