package ingest

import (
	"fmt"
	"time"
)

// MaxBody bounds a body, unpacked, in bytes. It is not a setting: clients rely
// on it, and on split.MaxRecord.
const MaxBody = 32 << 20

// Config holds the settings of an Ingest.
type Config struct {
	// MaxInFlightBytes bounds the memory of all bodies being worked on, and of
	// the connections of those that wait.
	MaxInFlightBytes int64
	// MaxBodiesPerCaller bounds how many bodies of one key are worked on at the
	// same time; more wait.
	MaxBodiesPerCaller int
	// ProduceTimeout is how long a body waits for its turn before it is answered
	// with 429, and how long its records wait for Kafka before 503.
	ProduceTimeout time.Duration
}

// Defaults returns the default settings.
func Defaults() Config {
	return Config{
		MaxInFlightBytes:   256 << 20,
		MaxBodiesPerCaller: 1024,
		ProduceTimeout:     15 * time.Second,
	}
}

// Validate returns an error for settings that cannot work.
func (c Config) Validate() error {
	switch {
	case c.MaxInFlightBytes < 2*MaxBody:
		return fmt.Errorf("ingest: MaxInFlightBytes %d is below %d, the memory that one body can need", c.MaxInFlightBytes, 2*MaxBody)
	case c.MaxBodiesPerCaller < 1:
		return fmt.Errorf("ingest: MaxBodiesPerCaller %d is below 1", c.MaxBodiesPerCaller)
	case c.ProduceTimeout <= 0:
		return fmt.Errorf("ingest: ProduceTimeout %v is not positive", c.ProduceTimeout)
	}
	return nil
}
