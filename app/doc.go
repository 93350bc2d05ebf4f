// Package app builds the services of the configured roles, starts them and stops them.
//
// It has no behaviour of its own. New opens backends and binds listeners; Run works
// until its context ends and then stops everything in reverse order, within
// drain_timeout.
//
// # Files
//
// Read app.go: New from top to bottom, with openBase and buildRoles. They have what they build in variables, so
// that a step which comes too early does not compile; a builder takes the base and what it uses of other roles.
//
//   - app.go, lifecycle.go: what is built in which order, and what ends it
//   - check_setting_files.go, servers.go, backends.go, topics.go: the start: files, listeners and their
//     certificate, backends, topics
//   - identity.go, sealed_stores.go, master_key_and_signing.go, audit.go: the directory, the stores of sealed
//     configuration, keys, the audit log
//   - feeds.go, own_event_publisher.go, origination.go, origination_admission.go, sip_server.go,
//     sip_directory.go: feeds; records of our own on the raw topics; calls and phones
//   - feed_status.go, feed_check.go, account_tree.go: states and checks of feeds, the account tree, for alerts
//   - ingest_and_normalizer.go, fanout.go, stats.go, figures.go, call_record_index.go, recordings.go,
//     aisession.go, webhook.go, control.go, ai_platform_actions.go, purge_deleted_accounts.go: the
//     builders of the other roles
//   - handler.go: the routes of the roles, the board, and what the routes alone use
//   - health.go, selfcheck.go, metrics.go, tracing.go: readiness, checks while running, metrics,
//     spans
package app
