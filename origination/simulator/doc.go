// Package simulator is a phone platform that is made up: its owners answer
// after 0.3 s, its destinations 0.6 s later, and 2 s after that everybody hangs
// up; 9901 is busy, 9902 rejects, 9903 never answers (contract, section B). Its
// call records and events take the same way through Kafka as a real platform's,
// with media_server "simulator", and its ids begin with "sim-".
//
// It refuses to ring anything. It keeps nothing: a call goes by the clock, so
// one that a crash interrupted is taken up where it would be by now.
//
// Each call has one goroutine until its records are on Kafka. When Follow's
// context ends the calls end too, with NORMAL_TEMPORARY_FAILURE, and Follow
// waits up to drainTimeout for their records. At Config.MaxCalls it answers
// fault.Unavailable.
package simulator
