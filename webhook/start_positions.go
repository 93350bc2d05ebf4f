package webhook

import (
	"context"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
)

// endPositions returns the end of every partition.
func endPositions(ctx context.Context, topic Topic) ([]deliveryPosition, error) {
	return fillPositions(ctx, topic, func(ctx context.Context, p *deliveryPosition) (err error) {
		_, p.next, err = topic.Offsets(ctx, p.partition)
		return err
	})
}

// positionsAfter returns positions from which all events with an id above id are read.
// Returns fault.KindGone if the event was never in the topic or was deleted by retention.
func positionsAfter(ctx context.Context, topic Topic, id event.ID) ([]deliveryPosition, error) {
	positions, err := fillPositions(ctx, topic, func(ctx context.Context, p *deliveryPosition) (err error) {
		p.lastID = id
		p.next, err = topic.OffsetAt(ctx, p.partition, time.UnixMilli(id.Milli()))
		return err
	})
	if err != nil {
		return nil, err
	}
	if id.Partition() >= len(positions) {
		return nil, noSuchEvent()
	}
	return positions, checkEvent(ctx, topic, id, positions[id.Partition()].next)
}

// checkEvent returns fault.KindGone if the event is not in its partition at or after the
// offset.
func checkEvent(ctx context.Context, topic Topic, id event.ID, offset int64) error {
	_, end, err := topic.Offsets(ctx, id.Partition())
	if err != nil {
		return err
	}
	reader := topic.Read(id.Partition(), atOffset(offset))
	defer reader.Close()
	for reader.Position().Offset < end {
		records, err := reader.Read(ctx)
		_, gap := kafka.PassableGap(err)
		if gap {
			return noSuchEvent()
		}
		if err != nil {
			return err
		}
		for i := range records {
			switch found, err := event.MessageID(records[i].Value); {
			case err != nil:
			case found == id:
				return nil
			case found > id:
				return noSuchEvent()
			}
		}
	}
	return noSuchEvent()
}

func noSuchEvent() error { return fault.New(fault.KindGone, "no such event in the log") }

// fillPositions returns a position for each partition. It calls fill for all of them
// concurrently.
func fillPositions(ctx context.Context, topic Topic,
	fill func(context.Context, *deliveryPosition) error) ([]deliveryPosition, error) {
	n, err := topic.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	positions, errs := make([]deliveryPosition, n), make([]error, n)
	var calls sync.WaitGroup
	for i := range positions {
		positions[i].partition = i
		calls.Go(func() { errs[i] = fill(ctx, &positions[i]) })
	}
	calls.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return positions, nil
}
