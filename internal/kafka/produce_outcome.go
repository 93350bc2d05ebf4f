package kafka

import (
	"errors"

	kafkago "github.com/segmentio/kafka-go"
)

// produceOutcome classifies the response to a produce request.
type produceOutcome int

const (
	outcomeRetry            produceOutcome = iota // the same batch may be sent again
	outcomeAlreadyWritten                         // by an earlier attempt
	outcomeRejected                               // it was not written and never will be
	outcomeSequenceRejected                       // not written: the broker does not accept the sequence number
	outcomeUndetermined                           // the broker does not report whether it was written
)

func outcomeOf(err error) produceOutcome {
	var brokerErr kafkago.Error
	if !errors.As(err, &brokerErr) {
		return outcomeRetry
	}

	switch brokerErr {
	case kafkago.DuplicateSequenceNumber:
		return outcomeAlreadyWritten
	case kafkago.OutOfOrderSequenceNumber, kafkago.UnknownProducerId,
		kafkago.InvalidProducerEpoch, kafkago.InvalidProducerIDMapping:
		return outcomeSequenceRejected
	case kafkago.Unknown:
		// A broker with a full disk (kfake) returns this error after it has
		// incremented the sequence: it would answer a repeat as already written.
		return outcomeUndetermined
	}

	if retriable(err) {
		return outcomeRetry
	}

	return outcomeRejected
}
