// Command benchmarks measures this tree, an earlier build, Centrifugo and minimal servers on the
// path of an event, and the Go benchmarks of this tree and of the earlier build, and writes the
// figures into docs/benchmarks.md. All run in turn, on the same broker, Redis and load generator.
//
// The broker is the embedded one of this tree in a process of its own, its log in memory where
// /dev/shm exists, so that Centrifugo does not pay for our normalizer's disk. A server is one process
// with normalizer, fanout and API. Centrifugo, built from the module that go.mod names, has its Redis
// engine, its Kafka consumer and unidirectional WebSockets with a token for each channel.
//
// Read first scenarios.go (what is measured) and gobench.go (the Go benchmarks); build.go builds the
// programs, server_processes.go starts them, measure.go lets them run in turn, run_bench.go and
// server_at_rest.go measure one, results.go keeps the figures of all runs, page.go writes them.
package main
