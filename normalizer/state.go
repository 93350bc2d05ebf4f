package normalizer

import (
	"context"
	"fmt"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
)

// stateKeeper keeps the state of one partition equal to the fold of cc.evt: of this
// normalizer's own batches and of those of another one. Its methods do nothing on a
// nil keeper.
type stateKeeper struct {
	w      *partitionWorker
	state  *state.Partition
	at     state.Position // the state is the fold of cc.evt up to here
	newest *normalized    // newest event folded by catchUp
	source event.Position // the highest of the folded events, see state.Position
	raw    event.Position // the last raw record processed, see state.Position
	writer *stateWriter
	sizes  [len(stateKinds)]int // as included in the metric
}

var stateKinds = [...]state.Kind{state.Agent, state.Call, state.Device}

// keepState rebuilds the state from cc.state and cc.evt and starts to write it. The
// returned context ends with ctx, or after a permanent write error; stop ends the
// writing.
func (w *partitionWorker) keepState(ctx context.Context) (_ context.Context, stop func(), err error) {
	began := time.Now()
	k := &stateKeeper{w: w, state: state.NewPartition()}
	view, last, next, err := w.readState(ctx)
	if err != nil {
		return nil, nil, err
	}
	k.state.Load(view)
	k.writer = newStateWriter(w, view, last, next)
	if position := view.Position(); position != nil {
		k.at = *position
		k.source, _ = position.Repeats() // zero if unknown
		k.raw, _ = event.ParsePosition(position.SourcePosition)
		err = w.retry(ctx, "checking the normalized log", func() error { return k.checkPosition(ctx) })
	} else {
		err = w.retry(ctx, "starting a state", func() error { return k.begin(ctx) })
		if err == nil {
			err = k.writer.add(ctx, nil, k.at)
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
		k.count(-1)
	}
	if err := k.catchUp(ctx); err != nil {
		stop()
		return nil, nil, err
	}
	k.count(1)
	w.state, w.batch.state = k, k.state
	w.metrics.rebuild.Observe(time.Since(began).Seconds())
	return ctx, stop, nil
}

// readState reads the whole partition of cc.state and returns the offset after its
// last record.
func (w *partitionWorker) readState(ctx context.Context) (view *state.View, last lastRecords, next int64, err error) {
	err = w.retry(ctx, "reading the state", func() (err error) {
		var foreign error
		reset := func() {
			view, last = state.NewView(), lastRecords{entries: map[state.Key]state.Record{}}
			view.KeepNumbers = true
		}
		next, err = w.deps.Log.ScanCompacted(ctx, event.TopicState, w.Partition, 0, reset, func(r *kafka.Record) {
			record, err := state.ParseRecord(string(r.Key), r.Value, r.Header(state.HeaderEventID))
			if err != nil {
				foreign = fmt.Errorf("offset %d: %w", r.Offset, err)
				return
			}
			view.Apply(record)
			last.add(record)
		})
		if foreign != nil {
			w.log.Error("records of another writer in the state topic", "topic", event.TopicState, "partition", w.Partition, "error", foreign)
		}
		return err
	})
	return view, last, next, err
}

// maxFirstFold bounds the events folded when cc.state is empty.
const maxFirstFold = 1 << 20

// begin initializes an empty state at the first event of cc.evt with facts, at the
// first start with a state or after cc.state was lost. The state does not include
// earlier events.
func (k *stateKeeper) begin(ctx context.Context) error {
	id, err := k.w.deps.Log.TopicID(ctx, k.w.out)
	if err != nil {
		return err
	}
	first, end, err := k.w.deps.Log.Offsets(ctx, k.w.out, k.w.Partition)
	if err != nil {
		return err
	}
	// Messages without facts come first: they were written before facts existed.
	low, high := max(first, end-maxFirstFold), end
	for low < high {
		middle := low + (high-low)/2
		has, err := k.hasFacts(ctx, middle, high)
		if err != nil {
			return err
		}
		if has {
			high = middle
		} else {
			low = middle + 1
		}
	}
	k.at = state.Position{Kind: state.PositionKind, Offset: low, LeaderEpoch: kafka.UnknownEpoch, TopicID: id.String()}
	err = k.w.deps.Log.Scan(ctx, k.w.out, k.w.Partition, max(first, low-recentRecords), low, func(r *kafka.Record) {
		if id, err := event.MessageID(r.Value); err == nil {
			k.at.EventID = max(k.at.EventID, id)
		}
	})
	if err != nil {
		return err
	}
	k.state.Start(k.at.EventID)
	newest := k.at.EventID
	if newest == 0 && low > 0 && low < end { // the events before low are deleted
		err = k.w.deps.Log.Scan(ctx, k.w.out, k.w.Partition, low, low+1, func(r *kafka.Record) { newest, _ = event.MessageID(r.Value) })
	}
	if newest != 0 {
		k.at.Since = newest.Time().Unix()
	}
	return err
}

// hasFacts reports whether the first message with an offset in [from, to) has facts.
func (k *stateKeeper) hasFacts(ctx context.Context, from, to int64) (has bool, err error) {
	found := false
	err = k.w.deps.Log.Scan(ctx, k.w.out, k.w.Partition, from, min(to, from+recentRecords), func(r *kafka.Record) {
		if _, ok, err := event.MessageFacts(r.Value); err == nil && !found {
			found, has = true, ok
		}
	})
	return has, err
}

// checkPosition moves the state to the continuation of cc.evt if the log does not
// continue at the state's position. Events lost from cc.evt are missing in the state
// or only in the state: their raw records, if they still exist, are normalized again
// with the same ids and do not change the state.
func (k *stateKeeper) checkPosition(ctx context.Context) error {
	topicID, err := k.w.deps.Log.TopicID(ctx, k.w.out)
	if err != nil {
		return err
	}
	at := kafka.LogPosition{Offset: k.at.Offset, LeaderEpoch: k.at.LeaderEpoch}
	if at.TopicID, err = kafka.ParseTopicID(k.at.TopicID); err != nil {
		at.TopicID = topicID // written when topics had no ids
	}
	err = k.w.deps.Log.CheckPosition(ctx, k.w.out, k.w.Partition, at)
	if gap, ok := kafka.PassableGap(err); ok {
		k.w.log.Error("normalized log does not continue at the end of the state", "topic", k.w.out, "partition", k.w.Partition,
			"kind", gap.Kind, "offset", at.Offset, "resume", gap.Resume, "error", gap)
		k.at.Offset, k.at.LeaderEpoch, err = gap.Resume, kafka.UnknownEpoch, nil
	}
	k.at.TopicID = topicID.String()
	return err
}

// followState folds the events written by another normalizer and, if that one is
// ahead, continues after them: so the state never includes a later event than the
// worker has reached.
func (w *partitionWorker) followState(ctx context.Context) error {
	if err := w.state.catchUp(ctx); err != nil || !w.state.isAhead() {
		return err
	}
	newest := w.state.newest
	err := w.retry(ctx, "continuing after another normalizer", func() error { return w.startAfter(ctx, newest) })
	return w.handleGap(ctx, err)
}

// isAhead reports whether the folded events are ahead of the worker.
func (k *stateKeeper) isAhead() bool {
	return k != nil && k.newest != nil &&
		k.newest.position.Compare(event.Position{Offset: k.w.next.Offset - 1, Generation: k.w.generation}) > 0
}

// foldRecords is the number of events after which catchUp passes the changes to the
// writer, small enough for one request.
const foldRecords = 500

// catchUp folds the events of cc.evt after the state's position.
func (k *stateKeeper) catchUp(ctx context.Context) error {
	if k == nil {
		return nil
	}
	return k.w.retry(ctx, "folding events", func() error {
		k.state.Reset()
		_, next, err := k.w.deps.Log.Offsets(ctx, k.w.out, k.w.Partition)
		for err == nil && k.at.Offset < next {
			to := min(next, k.at.Offset+foldRecords)
			if err = k.fold(ctx, to); err != nil {
				k.state.Reset()
				return err
			}
			k.at.Offset = to
			err = k.handOn(ctx)
		}
		return err
	})
}

// fold folds the events from the state's position to before offset to.
func (k *stateKeeper) fold(ctx context.Context, to int64) error {
	var foreign error
	err := k.w.deps.Log.Scan(ctx, k.w.out, k.w.Partition, k.at.Offset, to, func(r *kafka.Record) {
		n, err := k.w.readNormalized(r)
		if err == nil {
			var e state.Event
			if e, _, err = state.ParseEvent(r.Key, r.Value, r.Header(event.HeaderIdentity)); err == nil {
				k.state.Fold(&e)
				k.folded(n.position)
				if k.newest == nil || n.position.Compare(k.newest.position) > 0 {
					k.newest = n
				}
				k.at.LeaderEpoch = r.LeaderEpoch
			}
		}
		if err != nil {
			foreign = fmt.Errorf("offset %d: %w", r.Offset, err)
		}
	})
	if foreign != nil {
		k.w.log.Error("records of another writer in the normalized topic", "topic", k.w.out, "partition", k.w.Partition, "error", foreign)
	}
	return err
}

// commit makes the state after a batch final. The batch ends with the raw record at
// last, and its events are durable. If they do not directly follow the folded events,
// another normalizer has written events between them, or they were written twice: then
// commit folds the log instead.
func (k *stateKeeper) commit(ctx context.Context, last event.Position, events []kafka.Record, written kafka.Appended) error {
	if k == nil {
		return nil
	}
	if len(events) > 0 {
		if next := k.at.Offset + int64(len(events)); written != (kafka.Appended{First: k.at.Offset, Next: next}) {
			if err := k.catchUp(ctx); err != nil {
				return err
			}
		} else {
			k.at.Offset, k.at.LeaderEpoch = written.Next, kafka.UnknownEpoch
			position, err := event.ParsePosition(string(events[len(events)-1].Header(event.HeaderPosition)))
			if err != nil {
				return err
			}
			k.folded(position)
		}
	}
	k.processed(last)
	return k.handOn(ctx)
}

// folded records the source position of a folded event.
func (k *stateKeeper) folded(position event.Position) {
	if k.at.EventPosition == "" || position.Compare(k.source) > 0 {
		k.source, k.at.EventPosition = position, position.String()
	}
	k.processed(position)
}

// processed records that all raw records up to a position are events, dead letters or
// dropped.
func (k *stateKeeper) processed(position event.Position) {
	if k.at.SourcePosition == "" || position.Compare(k.raw) > 0 {
		k.raw, k.at.SourcePosition = position, position.String()
	}
}

// handOn passes the changes to the writer.
func (k *stateKeeper) handOn(ctx context.Context) error {
	k.at.EventID = k.state.Last()
	var changes []state.Change
	k.state.Commit(func(c state.Change) { changes = append(changes, c) })
	k.count(1)
	return k.writer.add(ctx, changes, k.at)
}

// count sets this partition's share of the entries metric: its sizes, or nothing if
// sign is 0 or less.
func (k *stateKeeper) count(sign int) {
	for i, kind := range stateKinds {
		size := 0
		if sign > 0 {
			size = k.state.Size(kind)
		}
		if size != k.sizes[i] {
			k.w.metrics.stateEntries.WithLabelValues(string(kind)).Add(float64(size - k.sizes[i]))
			k.sizes[i] = size
		}
	}
}
