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
// The binary is built once per run, with -race when the tests are; a data race
// or a panic in a server's log fails the test that started it. A server never
// outlives the test binary (see startChild).
package e2e
