package kafka

import (
	"errors"
	"slices"

	kafkago "github.com/segmentio/kafka-go"
)

// tooLarge reports whether a broker rejected a batch for its size. The broker has
// neither written it nor counted its sequence.
func tooLarge(err error) bool {
	return errors.Is(err, kafkago.MessageSizeTooLarge) || errors.Is(err, kafkago.RecordListTooLarge)
}

// divide splits a batch of several records in two. A topic may have a smaller limit
// than BatchBytes: then a batch of records that individually fit is sent in parts, and
// only a record that exceeds the limit by itself fails.
func (b *batch) divide() (parts [2]*batch, err error) {
	halves, err := b.Halves()
	if err != nil {
		return parts, err
	}
	waiting := slices.Clone(b.waiting)
	for i := range halves {
		part := &batch{Builder: halves[i], base: -1, started: b.started, deadline: b.deadline, uncertain: b.uncertain}
		part.waiting, waiting = firstShares(waiting, part.Records)
		parts[i] = part
	}
	return parts, nil
}

// firstShares divides shares into those of the first records and the rest. It changes
// waiting.
func firstShares(waiting []share, records int) (first, rest []share) {
	for records > 0 {
		n := min(records, waiting[0].records)
		first = append(first, share{waiting[0].call, n})
		records -= n
		if waiting[0].records -= n; waiting[0].records == 0 {
			waiting = waiting[1:]
		}
	}
	return first, waiting
}
