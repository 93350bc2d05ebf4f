package kafka

import (
	"errors"

	kafkago "github.com/segmentio/kafka-go"
)

// verdict is what an answer to a batch means for it.
type verdict int

const (
	again        verdict = iota // the same batch may be sent again
	written                     // an earlier try was
	refused                     // it was not written and never will be
	lostSequence                // not written: the broker has lost count
	broken                      // the broker does not say
)

func verdictOn(err error) verdict {
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
