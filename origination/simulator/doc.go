// Package simulator is a simulated phone platform: owners answer after 0.3 s, destinations 0.6 s
// later, and the call ends 2 s after that; 9901 is busy, 9902 rejects, 9903 never answers
// (docs/calls.md). Its call records and events go through Kafka as a real platform's do, with
// media_server "simulator", and its ids begin with "sim-".
//
// It rings no phones and stores nothing. A call's state depends only on the time since it was placed,
// so after a crash a call continues at the state it would have reached.
//
// Each call has one goroutine until its records are in Kafka. When Follow's context ends, the calls
// end with NORMAL_TEMPORARY_FAILURE, and Follow waits up to drainTimeout for their records. At
// Config.MaxCalls it returns fault.Unavailable.
package simulator
