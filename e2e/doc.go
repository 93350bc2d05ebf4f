// Package e2e holds the tests that drive a built trunkline as a client
// would: `serve` runs as a child process that has only its environment for
// settings, and the tests are its HTTP, WebSocket, SSE and Kafka clients and
// its command line. Every promise about the whole is kept here: on the
// embedded default, and on real Kafka, Redis and PostgreSQL over several nodes.
//
// It does not reach into a running server: all that a test sees, a client could
// know. Waiting is for conditions, with generous bounds; figures are in the
// benchmarks and are not asserted.
//
// The binary is built once per run, with -race when the tests are; a data race
// or a panic in a server's log fails the test that started it. A server never
// outlives the test binary (see launch).
package e2e
