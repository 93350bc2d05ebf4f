package normalizer

import (
	"context"
	"fmt"
	"math"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
)

// stateKeeper keeps the state of one partition equal to the fold of cc.evt: of this
// normalizer's own batches and of those of another one. Its methods do nothing on a
// nil keeper.
type stateKeeper struct {
	worker         *partitionWorker
	partitionState *state.Partition
	position       state.Position // partitionState is the fold of cc.evt up to here
	newest         *normalizedRef // newest event folded by catchUp
	highestFolded  event.Position // the highest of the folded events, see state.Position
	lastProcessed  event.Position // the last raw record processed, see state.Position
	writer         *stateWriter
	countedSizes   [len(stateKinds)]int // as included in the metric
}

var stateKinds = [...]state.Kind{state.Agent, state.Call, state.Device}

// startState rebuilds the state from cc.state and cc.evt and starts to write it. The
// returned context ends with ctx, or after a permanent write error; stop ends the
// writing.
func (w *partitionWorker) startState(ctx context.Context) (_ context.Context, stop func(), err error) {
	startedAt := time.Now()
	k := &stateKeeper{worker: w, partitionState: state.NewPartition()}
	topic, err := w.readState(ctx)
	if err != nil {
		return nil, nil, err
	}

	k.partitionState.Load(topic.view)
	k.writer = newStateWriter(w, topic)
	position := topic.view.Position()
	if position != nil {
		k.position = *position
		k.highestFolded, _ = position.Repeats() // zero if unknown
		k.lastProcessed, _ = event.ParsePosition(position.SourcePosition)
		k.position.Incomplete = topic.hasLoss
	} else {
		err = w.retry(ctx, "starting a state", func() error { return k.initialize(ctx) })
		k.position.Incomplete = topic.hasLoss
		if err == nil {
			err = k.writer.add(ctx, nil, k.position)
		}
	}

	if err != nil {
		return nil, nil, err
	}

	ctx, cancel := context.WithCancelCause(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if err := k.writer.run(ctx); err != nil {
			cancel(fmt.Errorf("writing the state: %w", err))
		}
	}()

	stop = func() {
		cancel(nil)
		<-stopped
		k.updateEntriesMetric(-1)
	}

	err = k.catchUp(ctx)
	if err == nil && k.position.Incomplete { // what was lost is folded
		k.position.Incomplete = false
		err = k.passChanges(ctx)
	}
	if err != nil {
		stop()
		return nil, nil, err
	}

	k.updateEntriesMetric(1)
	w.stateKeeper, w.batch.partitionState = k, k.partitionState
	w.metrics.rebuild.Observe(time.Since(startedAt).Seconds())

	return ctx, stop, nil
}

// stateTopic is what a partition of cc.state has at a takeover.
type stateTopic struct {
	view    *state.View
	last    lastRecords
	next    int64 // offset after the last record
	hasLoss bool  // records after those in view are lost
}

// readState reads the whole partition of cc.state. If it lost records before a batch that
// was in flight, the view has the records before the loss alone, and the caller must
// fold the events after its position again.
func (w *partitionWorker) readState(ctx context.Context) (stateTopic, error) {
	topic, intact, err := w.readStateBefore(ctx, math.MaxInt64)
	if err != nil || !topic.hasLoss {
		return topic, err
	}

	w.metrics.restarts.WithLabelValues(event.TopicState, string(kafka.GapTruncated)).Inc()
	w.log.Error("records of the state topic lost, the state is folded again", "topic", event.TopicState,
		"partition", w.Partition,
		"intact", intact, "end", topic.next)
	before, _, err := w.readStateBefore(ctx, intact)
	topic.view = before.view

	return topic, err
}

// readStateBefore reads the partition of cc.state; the view has the records before offset
// to. intact is the offset before which no record is lost.
func (w *partitionWorker) readStateBefore(ctx context.Context, to int64) (topic stateTopic, intact int64, err error) {
	err = w.retry(ctx, "reading the state", func() (err error) {
		var parseErr error
		reset := func() {
			topic, intact = stateTopic{view: state.NewView(),
				last: lastRecords{entries: map[state.Key]state.Record{}}}, 0
			topic.view.KeepNumbers = true
		}

		topic.next, err = w.deps.LogReader.ScanCompacted(ctx, event.TopicState, w.Partition, 0, reset,
			func(r *kafka.Record) {
				record, err := state.ParseRecord(string(r.Key), r.Value, r.Header(state.HeaderEventID))
				if err != nil {
					parseErr = fmt.Errorf("offset %d: %w", r.Offset, err)
					return
				}

				at := record.Position
				if at != nil {
					newest := topic.view.Position()
					topic.hasLoss = topic.hasLoss || !at.Intact(r.Offset)
					// What was lost before this position has been written again.
					if at.Intact(r.Offset) && (newest == nil || !at.Behind(newest)) {
						topic.hasLoss, intact = false, r.Offset+1
					}
				}

				if r.Offset < to {
					topic.view.Apply(record)
				}

				topic.last.add(record)
			})

		if parseErr != nil {
			w.log.Error("records of another writer in the state topic", "topic", event.TopicState,
				"partition", w.Partition, "error", parseErr)
		}

		return err
	})

	return topic, intact, err
}

// maxInitialEvents bounds the events folded when cc.state is empty.
const maxInitialEvents = 1 << 20

// initialize initializes an empty state at the first event of cc.evt with facts, at the
// first start with a state or after cc.state was lost. The state does not include
// earlier events.
func (k *stateKeeper) initialize(ctx context.Context) error {
	id, err := k.worker.deps.LogReader.TopicID(ctx, k.worker.normalizedTopic)
	if err != nil {
		return err
	}

	first, end, err := k.worker.deps.LogReader.Offsets(ctx, k.worker.normalizedTopic, k.worker.Partition)
	if err != nil {
		return err
	}

	// Messages without facts come first: they were written before facts existed.
	low, high := max(first, end-maxInitialEvents), end
	for low < high {
		middle := low + (high-low)/2
		hasFacts, err := k.hasFacts(ctx, middle, high)
		if err != nil {
			return err
		}

		if hasFacts {
			high = middle
		} else {
			low = middle + 1
		}
	}

	k.position = state.Position{Kind: state.PositionKind, Offset: low, LeaderEpoch: kafka.UnknownEpoch,
		TopicID: id.String()}
	// Two normalizers may have written by turns: the highest of the last ids is that of the last event.
	err = k.worker.deps.LogReader.Scan(ctx, k.worker.normalizedTopic, k.worker.Partition,
		max(first, low-firstSearchRecords), low,
		func(r *kafka.Record) {
			id, err := event.MessageID(r.Value)
			if err == nil {
				k.position.EventID = max(k.position.EventID, id)
			}
		})
	if err != nil {
		return err
	}

	k.partitionState.Start(k.position.EventID)
	newest := k.position.EventID
	if newest == 0 && low > 0 && low < end { // the events before low are deleted
		err = k.worker.deps.LogReader.Scan(ctx, k.worker.normalizedTopic, k.worker.Partition, low, low+1,
			func(r *kafka.Record) { newest, _ = event.MessageID(r.Value) })
	}
	if newest != 0 {
		k.position.Since = newest.Time().Unix()
	}

	return err
}

// hasFacts reports whether the first message with an offset in [from, to) has facts.
func (k *stateKeeper) hasFacts(ctx context.Context, from, to int64) (has bool, err error) {
	found := false
	err = k.worker.deps.LogReader.Scan(ctx, k.worker.normalizedTopic, k.worker.Partition,
		from, min(to, from+firstSearchRecords),
		func(r *kafka.Record) {
			_, ok, err := event.MessageFacts(r.Value)
			if err == nil && !found {
				found, has = true, ok
			}
		})
	return has, err
}

// followLog moves the state to the continuation of cc.evt if the log does not continue at
// the state's position: it was cut, is another log, or its records were deleted. Events
// that only the state has stay in it: a takeover normalizes their raw records again, with
// the same ids, and they do not change the state.
func (k *stateKeeper) followLog(ctx context.Context) error {
	log, topic, partition := k.worker.deps.LogReader, k.worker.normalizedTopic, k.worker.Partition
	topicID, err := log.TopicID(ctx, topic)
	if err != nil {
		return err
	}

	position := kafka.LogPosition{Offset: k.position.Offset, LeaderEpoch: k.position.LeaderEpoch}
	position.TopicID, err = kafka.ParseTopicID(k.position.TopicID)
	if err != nil {
		position.TopicID = topicID // written when topics had no ids
	}

	gap, err := k.findGap(ctx, position)
	if err != nil {
		return err
	}

	if gap != nil {
		if gap.ReusesOffsets() {
			k.worker.metrics.restarts.WithLabelValues(topic, string(gap.Kind)).Inc()
			gap.Resume, err = k.firstNotFolded(ctx)
		}
		if err != nil {
			return err
		}

		k.worker.log.Error("normalized log does not continue at the end of the state", "topic", topic,
			"partition", partition,
			"kind", gap.Kind, "offset", position.Offset, "resume", gap.Resume, "error", gap)
		k.position.Offset, k.position.LeaderEpoch = gap.Resume, kafka.UnknownEpoch
	}

	k.position.TopicID = topicID.String()
	return nil
}

// findGap returns the reason for which cc.evt does not continue at the position, or nil.
// The leader epoch at the end of a batch is unknown: a log that was cut and has grown
// past the position is known by the event before the position, which is not folded.
func (k *stateKeeper) findGap(ctx context.Context, position kafka.LogPosition) (*kafka.GapError, error) {
	err := k.worker.deps.LogReader.CheckPosition(ctx, k.worker.normalizedTopic, k.worker.Partition, position)
	if gap, ok := kafka.PassableGap(err); ok {
		return gap, nil
	}
	if err != nil {
		return nil, err
	}

	folded, err := k.allFolded(ctx, position.Offset-1, position.Offset)
	if err != nil || folded {
		return nil, err
	}

	return &kafka.GapError{Topic: k.worker.normalizedTopic, Partition: k.worker.Partition, Kind: kafka.GapTruncated,
		Offset:      position.Offset,
		LeaderEpoch: kafka.UnknownEpoch}, nil
}

// firstNotFolded returns the offset from which cc.evt may have events that are not
// folded. First copies of events are in the order of their ids: before the newest
// firstSearchRecords events that are folded there is none.
func (k *stateKeeper) firstNotFolded(ctx context.Context) (int64, error) {
	first, end, err := k.worker.deps.LogReader.Offsets(ctx, k.worker.normalizedTopic, k.worker.Partition)
	for err == nil && end > first {
		from, folded := max(first, end-firstSearchRecords), false
		folded, err = k.allFolded(ctx, from, end)
		if folded {
			return end, nil
		}
		end = from
	}

	return end, err
}

// allFolded reports whether the state has all events of cc.evt with offsets in
// [from, to).
func (k *stateKeeper) allFolded(ctx context.Context, from, to int64) (folded bool, err error) {
	folded = true
	err = k.worker.deps.LogReader.Scan(ctx, k.worker.normalizedTopic, k.worker.Partition, max(from, 0), to,
		func(r *kafka.Record) {
			id, err := event.MessageID(r.Value)
			folded = folded && (err != nil || id <= k.partitionState.Last())
		})
	return folded, err
}

// catchUpState folds the events written by another normalizer and, if that one is
// ahead, continues after them: so the state never includes a later event than the
// worker has reached.
func (w *partitionWorker) catchUpState(ctx context.Context) error {
	err := w.stateKeeper.catchUp(ctx)
	if err != nil || !w.stateKeeper.isAhead() {
		return err
	}
	newest := w.stateKeeper.newest
	err = w.retry(ctx, "continuing after another normalizer", func() error { return w.resumeAfterEvent(ctx, newest) })
	return w.handleGap(ctx, err)
}

// isAhead reports whether the folded events are ahead of the worker.
func (k *stateKeeper) isAhead() bool {
	return k != nil && k.newest != nil &&
		k.newest.position.Compare(event.Position{Offset: k.worker.next.Offset - 1, Generation: k.worker.generation}) > 0
}

// maxFoldRecords is the number of events after which catchUp passes the changes to the
// writer, small enough for one request.
const maxFoldRecords = 500

// catchUp folds the events of cc.evt after the state's position, or after the events that
// a log which does not continue there has in common with the state.
func (k *stateKeeper) catchUp(ctx context.Context) error {
	if k == nil {
		return nil
	}

	return k.worker.retry(ctx, "folding events", func() error {
		// The events of a batch that is not committed are folded from the log, if they are there.
		k.partitionState.Reset()
		if err := k.followLog(ctx); err != nil {
			return err
		}

		_, next, err := k.worker.deps.LogReader.Offsets(ctx, k.worker.normalizedTopic, k.worker.Partition)
		for err == nil && k.position.Offset < next {
			to := min(next, k.position.Offset+maxFoldRecords)
			err = k.fold(ctx, to)
			if err != nil {
				k.partitionState.Reset()
				return err
			}

			k.position.Offset = to
			err = k.passChanges(ctx)
		}

		return err
	})
}

// fold folds the events from the state's position to before offset to.
func (k *stateKeeper) fold(ctx context.Context, to int64) error {
	var parseErr error
	err := k.worker.deps.LogReader.Scan(ctx, k.worker.normalizedTopic, k.worker.Partition, k.position.Offset, to,
		func(r *kafka.Record) {
			n, err := k.worker.readNormalized(r)
			if err == nil {
				var e state.Event
				e, _, err = state.ParseEvent(r.Key, r.Value, r.Header(event.HeaderIdentity))
				if err == nil {
					k.partitionState.FoldCompleted(&e)
					k.recordFolded(n.position)
					if k.newest == nil || n.position.Compare(k.newest.position) > 0 {
						k.newest = n
					}
					k.position.LeaderEpoch = r.LeaderEpoch
				}
			}
			if err != nil {
				parseErr = fmt.Errorf("offset %d: %w", r.Offset, err)
			}
		})

	if parseErr != nil {
		k.worker.log.Error("records of another writer in the normalized topic", "topic", k.worker.normalizedTopic,
			"partition", k.worker.Partition, "error", parseErr)
	}

	return err
}

// commitBatch makes the state after a batch final. The batch ends with the raw record at
// last, and its events are durable. If they do not directly follow the folded events,
// another normalizer has written events between them, or they were written twice: then
// commitBatch folds the log instead. So it does if they lie before the end of the folded
// events: then cc.evt was cut or made again.
func (k *stateKeeper) commitBatch(ctx context.Context, last event.Position, events []kafka.Record,
	written kafka.Appended) error {
	if k == nil {
		return nil
	}

	if len(events) > 0 {
		next := k.position.Offset + int64(len(events))
		if written != (kafka.Appended{First: k.position.Offset, Next: next}) {
			if err := k.catchUp(ctx); err != nil {
				return err
			}
		} else {
			k.position.Offset, k.position.LeaderEpoch = written.Next, kafka.UnknownEpoch
			position, err := event.ParsePosition(string(events[len(events)-1].Header(event.HeaderPosition)))
			if err != nil {
				return err
			}
			k.recordFolded(position)
		}
	}

	k.recordProcessed(last)
	return k.passChanges(ctx)
}

// recordFolded records the source position of a folded event.
func (k *stateKeeper) recordFolded(position event.Position) {
	if k.position.EventPosition == "" || position.Compare(k.highestFolded) > 0 {
		k.highestFolded, k.position.EventPosition = position, position.String()
	}
	k.recordProcessed(position)
}

// recordProcessed records that all raw records up to a position are events, dead letters or
// dropped.
func (k *stateKeeper) recordProcessed(position event.Position) {
	if k.position.SourcePosition == "" || position.Compare(k.lastProcessed) > 0 {
		k.lastProcessed, k.position.SourcePosition = position, position.String()
	}
}

// passChanges passes the changes to the writer.
func (k *stateKeeper) passChanges(ctx context.Context) error {
	k.position.EventID = k.partitionState.Last()
	var changes []state.Change
	k.partitionState.Commit(func(c state.Change) { changes = append(changes, c) })
	k.updateEntriesMetric(1)
	return k.writer.add(ctx, changes, k.position)
}

// updateEntriesMetric sets this partition's share of the entries metric: its sizes, or nothing if
// sign is 0 or less.
func (k *stateKeeper) updateEntriesMetric(sign int) {
	for i, kind := range stateKinds {
		size := 0
		if sign > 0 {
			size = k.partitionState.Size(kind)
		}
		if size != k.countedSizes[i] {
			k.worker.metrics.stateEntries.WithLabelValues(string(kind)).Add(float64(size - k.countedSizes[i]))
			k.countedSizes[i] = size
		}
	}
}
