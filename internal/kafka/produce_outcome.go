package kafka

import (
	"errors"

	kafkago "github.com/segmentio/kafka-go"
)

// produceOutcome classifies the response to a produce request.
type produceOutcome int

const (
	again        produceOutcome = iota // the same batch may be sent again
	written                            // by an earlier attempt
	refused                            // it was not written and never will be
	lostSequence                       // not written: the broker does not accept the sequence number
	broken                             // the broker does not report whether it was written
)

func outcomeOf(err error) produceOutcome {
	var refusal kafkago.Error
	if !errors.As(err, &refusal) {
		return again
	}
	switch refusal {
	case kafkago.DuplicateSequenceNumber:
		return written
	case kafkago.OutOfOrderSequenceNumber, kafkago.UnknownProducerId,
		kafkago.InvalidProducerEpoch, kafkago.InvalidProducerIDMapping:
		return lostSequence
	case kafkago.Unknown:
		// A broker with a full disk (kfake) returns this error after it has
		// incremented the sequence: it would answer a repeat as already written.
		return broken
	}
	if retriable(err) {
		return again
	}
	return refused
}
