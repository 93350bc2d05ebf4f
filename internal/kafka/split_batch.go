package kafka

import (
	"errors"
	"slices"

	kafkago "github.com/segmentio/kafka-go"
)

// isTooLarge reports whether a broker rejected a batch for its size. The broker has
// neither written it nor counted its sequence.
func isTooLarge(err error) bool {
	return errors.Is(err, kafkago.MessageSizeTooLarge) || errors.Is(err, kafkago.RecordListTooLarge)
}

// split splits a batch of several records in two. A topic may have a smaller limit
// than BatchBytes: then a batch of records that individually fit is sent in parts, and
// only a record that exceeds the limit by itself fails.
func (b *batch) split() (parts [2]*batch, err error) {
	halves, err := b.Halves()
	if err != nil {
		return parts, err
	}

	shares := slices.Clone(b.shares)
	for i := range halves {
		part := &batch{BatchBuilder: halves[i], base: -1, startedAt: b.startedAt, deadline: b.deadline,
			uncertain: b.uncertain}
		part.shares, shares = splitShares(shares, part.Records)
		parts[i] = part
	}

	return parts, nil
}

// splitShares divides shares into those of the first records and the rest. It changes
// shares.
func splitShares(shares []callShare, records int) (first, rest []callShare) {
	for records > 0 {
		n := min(records, shares[0].records)
		first = append(first, callShare{shares[0].call, n})
		records -= n
		shares[0].records -= n
		if shares[0].records == 0 {
			shares = shares[1:]
		}
	}

	return first, shares
}
