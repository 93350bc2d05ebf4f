package cdrindex

import "fmt"

// Config holds the settings. Zero fields take their defaults.
type Config struct {
	RetentionMonths int // whole months kept beside the current one; 0: all
	Batches         int // written to the database at once by one process; default 4
	BatchRows       int // of one batch, about; default 5000
}

// batchBytes bounds a batch in bytes of Kafka records.
const batchBytes = 16 << 20

// Validate returns an error for settings that cannot work.
func (c Config) Validate() error {
	const most = 1200
	if c.RetentionMonths < 0 || c.RetentionMonths > most {
		return fmt.Errorf("cdrindex: retention must be 0 to %d months, is %d", most, c.RetentionMonths)
	}
	if c.Batches < 0 || c.BatchRows < 0 {
		return fmt.Errorf("cdrindex: batches (%d) and batch rows (%d) cannot be negative", c.Batches, c.BatchRows)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Batches == 0 {
		c.Batches = 4 // of the database's 16 connections: the rest is the reports'
	}
	if c.BatchRows == 0 {
		c.BatchRows = 5000
	}
	return c
}
