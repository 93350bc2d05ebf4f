package ingest

import (
	"time"

	"trunkline/internal/setting"
)

// MaxBody is the largest decompressed size of a body in bytes. It is not a setting, because clients
// rely on it and on split.MaxRecord.
const MaxBody = 32 << 20

// minMemory is the memory that one body can need.
const minMemory setting.Bytes = 2 * MaxBody

// Settings holds the settings of ingest. MaxInFlightBytes includes the memory of the connections of
// waiting bodies.
type Settings struct {
	MaxInFlightBytes   setting.Bytes `yaml:"max_in_flight_bytes" doc:"memory of all bodies being worked on; more wait"`
	MaxBodiesPerCaller int           `yaml:"max_bodies_per_caller" doc:"bodies of one key being worked on at the same time; more wait"`
	ProduceTimeout     time.Duration `yaml:"produce_timeout" doc:"how long a body waits for its turn, then 429, and its records for Kafka, then 503"`
}

// DefaultSettings returns the settings where nothing is set.
func DefaultSettings() Settings {
	return Settings{MaxInFlightBytes: 256 << 20, MaxBodiesPerCaller: 1024, ProduceTimeout: 15 * time.Second}
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	c.Must(s.MaxInFlightBytes >= minMemory, "max_in_flight_bytes",
		"must be at least %s, what one body can need, is %s", minMemory, s.MaxInFlightBytes)
	c.AtLeastOne("max_bodies_per_caller", s.MaxBodiesPerCaller)
	c.Positive("produce_timeout", s.ProduceTimeout)
}
