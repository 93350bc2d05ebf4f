package kafka

import (
	"errors"

	kafkago "github.com/segmentio/kafka-go"
)

// produceOutcome classifies the response to a produce request for its batch.
type produceOutcome int

const (
	again        produceOutcome = iota // the same batch may be sent again
	written                            // an earlier try was
	refused                            // it was not written and never will be
	lostSequence                       // not written: the broker has lost count
	broken                             // the broker does not say
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
		// A broker whose disk is full says so after it has counted the
		// sequence (kfake does): a repeat would be taken for written.
		return broken
	}
	if retriable(err) {
		return again
	}
	return refused
}
