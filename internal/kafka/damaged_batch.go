package kafka

import (
	"context"
	"errors"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"trunkline/internal/kafka/wire"
)

// readableAfter returns the first readable offset after a damaged one. It is for
// damage that hides the end of its batch: neither the broker nor the batch's header
// has it. Brokers find later batches through their index. readableAfter fetches at
// growing distances, then between the last two.
func (r *Reader) readableAfter(ctx context.Context, damaged, end int64) (int64, error) {
	damagedUpTo, readableFrom := damaged, end
	for distance := int64(1); damaged+distance < end; distance *= 2 {
		ok, err := r.readableAt(ctx, damaged+distance)
		if err != nil {
			return 0, err
		}

		if ok {
			readableFrom = damaged + distance
			break
		}

		damagedUpTo = damaged + distance
	}

	// Finds the first readable offset if the damage is in one piece, else one that follows some of it.
	for readableFrom-damagedUpTo > 1 {
		middle := damagedUpTo + (readableFrom-damagedUpTo)/2
		ok, err := r.readableAt(ctx, middle)
		if err != nil {
			return 0, err
		}

		if ok {
			readableFrom = middle
		} else {
			damagedUpTo = middle
		}
	}

	return readableFrom, nil
}

// readableAt reports whether a fetch at the offset begins with an undamaged batch.
func (r *Reader) readableAt(ctx context.Context, offset int64) (bool, error) {
	leader, err := r.cluster.leaders.leader(ctx, r.prefixedTopic, r.partition)
	if err != nil {
		return false, err
	}

	requested := fetchPartition{fetchKey: fetchKey{r.topicID, int32(r.partition)}, offset: offset,
		leaderEpoch: leader.epoch, lastEpoch: UnknownEpoch}
	// Without a wait: an offset that has no record is answered at once, as not readable.
	frame := appendFetchRequest(nil, noSession, 0, minPartBufferBytes, []fetchPartition{requested}, nil)
	e := &exchange{key: protocol.Fetch, version: fetchVersion, frame: frame}
	if err := r.cluster.roundTrip(ctx, leader.address, e, requestTimeout); err != nil {
		return false, err
	}

	readable, partErr := false, wire.ErrMalformed
	header, err := readFetchResponse(e.response, func(_ fetchKey, f *fetchedPartition) {
		partErr = f.err
		if partErr == nil {
			readable = wire.Readable(f.batches, offset)
		}
	})

	err = errors.Join(err, header.err)
	if err != nil {
		return false, err
	}

	if errors.Is(partErr, kafkago.InvalidMessage) {
		return false, nil
	}

	return readable, partErr
}
