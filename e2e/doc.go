// Package e2e holds the tests that use a built trunkline like its clients: `serve` runs as a
// child process that is configured by its environment only, and the tests are its HTTP,
// WebSocket, SSE and Kafka clients and use its command line. They cover every promise about the
// whole system: on the embedded backends, and on real Kafka, Redis and PostgreSQL over several
// nodes.
//
// It uses no internals of a running server: everything that a test observes, a client could
// observe. Tests wait for conditions, with generous timeouts; figures belong to the benchmarks
// and are not asserted.
//
// # Helpers
//
//   - run_program_test.go, start_node_test.go, start_cluster_test.go: the program, one that serves, several;
//     network_namespace_test.go, faulty_proxy_test.go, node_probes_test.go: around it
//   - http_client_test.go, portal_login_test.go, events_channel_client_test.go, reconnecting_subscriber_test.go:
//     its clients; make_accounts_and_records_test.go, load_posters_test.go: accounts, and records that are posted
//   - run_tools_test.go, foreign_programs_test.go, install_packages_test.go: programs and packages of others
//   - drive_chromium_test.go, drive_board_test.go: a browser, and the board in it
//   - fake_freeswitch_test.go, fake_trace_collector_test.go, fake_media_call_test.go, baresip_phone_test.go: what
//     is at its other end
//   - docs_parse_page_test.go, docs_run_page_test.go, docs_shell_test.go, docs_compare_output_test.go: how the
//     examples of a page are run
//   - suite_every_backend_test.go has the list of the tests of the files suite_*_test.go, which run on every backend
//
// The binary is built once per run, with -race when the tests are; a data race
// or a panic in a server's log fails the test that started it. A server never
// outlives the test binary (see startChild).
package e2e
