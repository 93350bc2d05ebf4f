package webhook

import (
	"context"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
)

// readEvents returns a reader of a partition of cc.evt.
func readEvents(events kafka.Log, partition int, from kafka.LogPosition) kafka.Source {
	return events.Read(kafka.ReaderConfig{Topic: event.TopicEvents, Partition: partition, From: from})
}

// endPositions returns the end of every partition.
func endPositions(ctx context.Context, events kafka.Log) ([]deliveryPosition, error) {
	return fillPositions(ctx, events, func(ctx context.Context, p *deliveryPosition) (err error) {
		_, p.next, err = events.Offsets(ctx, event.TopicEvents, p.partition)
		return err
	})
}

// positionsAfter returns positions from which all events with an id above id are read.
// Returns fault.KindGone if the event was never in the topic or was deleted by retention.
func positionsAfter(ctx context.Context, events kafka.Log, id event.ID) ([]deliveryPosition, error) {
	positions, err := fillPositions(ctx, events, func(ctx context.Context, p *deliveryPosition) (err error) {
		p.lastID = id
		p.next, err = events.OffsetAt(ctx, event.TopicEvents, p.partition, time.UnixMilli(id.Milli()))
		return err
	})
	if err != nil {
		return nil, err
	}

	if id.Partition() >= len(positions) {
		return nil, noSuchEvent()
	}

	return positions, checkEvent(ctx, events, id, positions[id.Partition()].next)
}

// checkEvent returns fault.KindGone if the event is not in its partition at or after the
// offset.
func checkEvent(ctx context.Context, events kafka.Log, id event.ID, offset int64) error {
	_, end, err := events.Offsets(ctx, event.TopicEvents, id.Partition())
	if err != nil {
		return err
	}

	reader := readEvents(events, id.Partition(), kafka.AtOffset(offset))
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
func fillPositions(ctx context.Context, events kafka.Log,
	fill func(context.Context, *deliveryPosition) error) ([]deliveryPosition, error) {
	n, err := events.Partitions(ctx, event.TopicEvents)
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
