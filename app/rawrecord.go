package app

import (
	"trunkline/event"
	"trunkline/internal/kafka"
)

// rawRecord returns one of Trunkline's own records for the normalizer. An account's
// records keep their order.
func rawRecord(topic, format, source, accountID string, value []byte) kafka.Record {
	return kafka.Record{
		Topic: topic, Partition: kafka.AnyPartition, Key: []byte(accountID), Value: value,
		Headers: []kafka.Header{
			{Key: event.HeaderFormat, Value: []byte(format)},
			{Key: event.HeaderSource, Value: []byte(source)},
		},
	}
}
