// Package origination places click-to-call calls (docs/calls.md): it rings the extension of the
// requesting user, has the destination dialled once the user has answered, and records the progress of
// each call.
//
// If this is your first change, read driver.go (the interface of a phone platform), place.go and
// call_store.go. A call is stored before the request is sent to its platform. From then on one node owns
// the call and keeps it in its callStore: it applies the driver's reports, writes each to the call's row,
// and publishes the written progress updates as call.progress, in order for each call and at least once:
// the row counts those that are published. Progress is read from the database, on any node.
//
// A user can only place calls from their own extension, to destinations that the account's rules
// allow. A call never returns to an earlier state. Legs and call records are not handled here; they
// come from the platform through Kafka.
//
// A node renews its lease in the database four times in each Config.Lease. The calls of a node whose
// lease has expired are taken over by the first node that notices, or, where there is only one node
// (SQLite), at its next start. A node that finds during a write that a call was taken over removes it
// from its callStore, with its slot of this node. When it finds that its lease had expired it looks for all such calls.
//
// Goroutines: Run has two (maintenance, purge) besides the driver's Follow, and a call two while it has
// something to store and something to publish. They end after Follow, once everything is stored and
// published, or after 5 s. The request itself stores a new call and the id that the platform gave it.
// Before Run, and at Config.MaxCalls open calls, requests get fault.Unavailable. While the database is
// unavailable requests get that error too, and progress updates stay in memory. While Kafka is
// unavailable events stay there, and ended calls stay open. Statements that write calls take at most half
// of the database's pool at once; the others wait for them.
//
// Admission decides which calls users may place: destinations, calls per minute, concurrent calls
// in the cluster (Redis; a killed node's calls are counted for slotTTL more). It also admits the calls
// of phones and the transfers of AI providers. Its Run is one goroutine.
//
// Lock order: Service.userLocks, then a driver's locks or storeEntry.writing (a statement of the call), then
// callStore.mu, then Admission.mu. While callStore.mu is held, only metrics, Admission.Release and
// Admission.Forget are called.
//
// # Files
//
// Read driver.go and progress.go, the words of the room; then originate.go and place.go.
//
//   - driver.go, progress.go, auto_driver.go: what a driver does, how a call proceeds, the driver
//     that chooses another
//   - service.go, config.go, settings.go, metrics.go: the service, settings, metrics
//   - originate.go, originate_once.go, place.go, idempotency_keys.go, click_to_call_resource_ids.go: a request:
//     checked, once for its Idempotency-Key, one at a time for a user
//   - get_call.go, cancel_call.go: a call's progress, and its end, also for other nodes
//   - admission.go, validate_destination.go, destination_rules.go, premium_numbers.go: who may call what
//   - call_slots.go, call_slots_redis.go: how many calls at once
//   - call_store.go, store_and_publish_calls.go, call_store_entry.go, early_progress.go: the open calls in
//     memory; storing and publishing them; one of them; what is reported before its call is known
//   - calls_sql.go, limited_writes.go, delete_old_calls.go, purge_account.go: the rows: read and written, how many
//     writes at once, deleted after Settings.Retention and with their account
//   - run_and_take_over.go, node_leases_sql.go, node_lease_loop.go: following the platform, and the
//     calls of nodes that are gone
package origination
