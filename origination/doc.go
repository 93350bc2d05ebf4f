// Package origination places click-to-call calls (docs/calls.md): it rings the extension of the
// requesting user, has the destination dialled once the user has answered, and records the progress of
// each call.
//
// If this is your first change, read driver.go (the interface of a phone platform), place.go and
// call_store.go. A call is stored before the request is sent to its platform. From then on one node owns
// the call and keeps it in its callStore: it applies the driver's reports, writes them, and publishes
// the written progress updates as call.progress, in order for each call and at least once. Progress is
// read from the database, on any node.
//
// A user can only place calls from their own extension, to destinations that the account's rules
// allow. A call never returns to an earlier state. Legs and call records are not handled here; they
// come from the platform through Kafka.
//
// A node renews its lease in the database four times in each Config.Lease. The calls of a node whose
// lease has expired are taken over by the first node that notices, or, where there is only one node
// (SQLite), at its next start. A node that finds during a write that a call was taken over removes it
// from its callStore.
//
// Goroutines: Run has four (writer, announcer, maintenance, purge) besides the driver's Follow. They
// end after Follow, once everything is stored and published, or after 5 s. All queued writes share one
// transaction, new requests before progress updates. Before Run, and at Config.MaxCalls open calls,
// requests get fault.Unavailable. While the database is unavailable requests get that error too, and
// progress updates stay queued. While Kafka is unavailable events stay queued, and ended calls stay
// open.
//
// Admission decides which calls users may place: destinations, calls per minute, concurrent calls
// in the cluster (Redis; a killed node's calls are counted for slotTTL more). It also admits the calls
// of phones and the transfers of AI providers. Its Run is one goroutine.
//
// Lock order: perUserLock, then a driver's locks, then callStore.mu, then Admission.mu. While
// callStore.mu is held, only metrics and Admission.Release are called.
package origination
