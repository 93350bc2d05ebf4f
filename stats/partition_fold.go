package stats

import (
	"context"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
)

// partitionFold folds the records of one partition of cc.evt, in order.
type partitionFold struct {
	*Processor
	partition int
	fold      *Fold
	position  state.Position // the fold includes cc.evt up to here
	retry     retry.Func
}

func (p *Processor) newPartitionFold(partition int) partitionFold {
	return partitionFold{Processor: p, partition: partition, fold: NewFold(p.rules),
		retry: retry.WhileUnavailable(func(action string, err error, wait time.Duration) {
			p.metrics.retries.Inc()
			p.log.Warn("partition processing paused", "doing", action, "partition", partition, "wait", wait,
				"error", err)
		})}
}

// seekToBeginning sets the position to the beginning of cc.evt.
func (w *partitionFold) seekToBeginning(ctx context.Context) error {
	id, err := w.deps.LogReader.TopicID(ctx, event.TopicEvents)
	if err != nil {
		return err
	}
	first, _, err := w.deps.LogReader.Offsets(ctx, event.TopicEvents, w.partition)
	w.position = state.Position{Kind: state.PositionKind, Offset: first, LeaderEpoch: kafka.UnknownEpoch,
		TopicID: id.String()}
	return err
}

// logPosition returns the position in cc.evt.
func (w *partitionFold) logPosition() kafka.LogPosition {
	at := kafka.LogPosition{Offset: w.position.Offset, LeaderEpoch: w.position.LeaderEpoch}
	id, err := kafka.ParseTopicID(w.position.TopicID)
	if err == nil { // else written when topics had no ids
		at.TopicID = id
	}
	return at
}

// openEvents returns a reader of cc.evt from the position on.
func (w *partitionFold) openEvents() kafka.Source {
	return w.deps.LogReader.Read(
		kafka.ReaderConfig{Topic: event.TopicEvents, Partition: w.partition, From: w.logPosition()})
}

// foldRecord folds the next record of cc.evt. First it reads the configurations that may be
// in force for new rows of the record, and for alerts.
func (w *partitionFold) foldRecord(ctx context.Context, r *kafka.Record) error {
	w.position.Offset, w.position.LeaderEpoch = r.Offset+1, r.LeaderEpoch
	w.metrics.events.Inc()
	id, err := event.MessageID(r.Value)
	if err != nil {
		w.reportInvalid(r, err)
		return nil
	}

	if err := w.readConfigs(ctx, id.Time()); err != nil {
		return err
	}
	if !Counts(event.Name(r.Header(event.HeaderName))) {
		// Other events only make time pass: most of cc.evt is never parsed.
		w.fold.Advance(id)
		return nil
	}

	e, _, err := state.ParseEvent(r.Key, r.Value, nil)
	if err != nil {
		w.reportInvalid(r, err)
		return nil
	}

	w.fold.Apply(&e)
	return nil
}

// readConfigs reads the configurations that may be in force at a time.
func (w *partitionFold) readConfigs(ctx context.Context, at time.Time) error {
	if w.deps.Configs.isCurrentFor(at) {
		return nil
	}
	return w.retry(ctx, "reading the configurations of queues", func() error { return w.deps.Configs.refresh(ctx) })
}

func (w *partitionFold) reportInvalid(r *kafka.Record, err error) {
	w.metrics.invalid.Inc()
	w.log.Error("invalid record in the normalized topic", "topic", event.TopicEvents, "partition", w.partition,
		"offset", r.Offset, "error", err)
}

func (w *partitionFold) newRecord(r Record) kafka.Record {
	return kafka.Record{Topic: event.TopicStats, Partition: w.partition, Key: []byte(r.Key), Value: r.Value,
		Headers: []kafka.Header{{Key: state.HeaderEventID, Value: r.EventID.Append(nil)}}}
}
