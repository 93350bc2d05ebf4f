// Package origination is click to call (specification, area B): it rings the
// extension of the user who asks, has the destination dialled once the user has
// answered, and records the progress of each call.
//
// If this is your first change, read driver.go (the interface of a phone
// platform), place.go and call_store.go. A call is stored before its platform is
// asked to dial. From then on one node has it in its callStore: it applies the
// driver's reports, writes them, and publishes what is written as call.progress,
// in order for each call and at least once. Progress is read from the database, on
// any node.
//
// It refuses to ring anybody but the caller, to dial what the account's rules
// forbid, and to let a call go back to an earlier state. The legs and records of a
// call are none of its business: they come from the platform through Kafka.
//
// A node renews a lease in the database four times in each Config.Lease. The calls
// of a node whose lease has expired are taken over by the node that notices first;
// where a node is alone (SQLite), by its own next start. A node that finds at a
// write that a call was taken over removes it from its callStore.
//
// Goroutines: Run has four (writer, announcer, maintenance, purge) beside the
// driver's Follow. They end after Follow has, once everything is stored and
// published, or after 5 s. All queued writes share one transaction, new orders
// before steps. Before Run has begun, and at Config.MaxCalls open calls, an order
// is answered with fault.Unavailable. While the database is away orders are too,
// and steps stay queued; while Kafka is away events stay queued, and ended calls
// stay open.
//
// Lock order: a perUserLock's turn, then a driver's locks, then callStore.mu. While
// callStore.mu is held nothing is called but metrics.
package origination
