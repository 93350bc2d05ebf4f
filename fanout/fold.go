package fanout

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/fanout/floor"
	"trunkline/internal/jsonscan"
	"trunkline/internal/kafka"
)

// folds keep the floor of every partition current, for snapshots. They read on
// their own, so that what is delivered never waits for them.
type folds struct {
	f *Fanout

	mu  sync.Mutex
	all []*fold // in the order of their partitions
}

// run follows all partitions, also those added later, until ctx ends.
func (w *folds) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for ctx.Err() == nil {
		n, err := w.f.log.Partitions(ctx, event.TopicEvents)
		if err != nil {
			w.f.foldFailed("counting partitions", err)
			pause(ctx, time.Second)
			continue
		}
		for _, d := range w.grow(n) {
			running.Go(func() { d.run(ctx) })
		}
		w.measure()
		pause(ctx, growthInterval)
	}
}

// grow adds what lacks of n partitions, all at once: a snapshot without one
// that is not new would hide what happened there.
func (w *folds) grow(n int) (added []*fold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	have := len(w.all)
	for p := have; p < n; p++ {
		added = append(added, &fold{f: w.f, partition: p, bounds: bounds(w.f.cfg.SnapshotHistory, n)})
	}
	w.all = append(w.all[:have:have], added...)
	return added
}

func (w *folds) list() []*fold {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all
}

func (w *folds) measure() {
	var agents, calls int
	var lag int64
	for _, d := range w.list() {
		d.mu.Lock()
		if d.floor != nil {
			a, c, _ := d.floor.Sizes()
			agents, calls, lag = agents+a, calls+c, lag+d.lag
		}
		d.mu.Unlock()
	}
	w.f.metrics.folded(agents, calls, lag)
}

// callAge is after what time without an event a call is given up: switches are
// known to leave some behind.
const callAge = 24 * time.Hour

// bounds are those of one partition of n. Accounts do not spread evenly, so a
// partition has some room at least.
func bounds(history time.Duration, n int) floor.Config {
	return floor.Config{AgentAge: history, CallAge: min(callAge, history),
		PerAccount: 1 << 15, InAll: max(1<<19/n, 1<<13)}
}

// fold is the floor of one partition and the place it is exact at.
type fold struct {
	f         *Fanout
	partition int
	bounds    floor.Config
	strings   interner // of run

	mu     sync.Mutex
	floor  *floor.Floor
	at     place
	last   event.ID // the newest message before at; 0: none read yet
	reader Reader
	caught time.Time // when there was last nothing more to read; zero: never yet
	lag    int64     // offsets not read yet, as of the last read
}

// run folds from the beginning of the history on, until ctx ends.
func (d *fold) run(ctx context.Context) {
	from, err := d.beginning(ctx)
	for err != nil && ctx.Err() == nil {
		d.f.foldFailed("finding the beginning", err)
		pause(ctx, time.Second)
		from, err = d.beginning(ctx)
	}
	for lost := true; ctx.Err() == nil; {
		if lost {
			d.begin(from)
		}
		from, lost = d.follow(ctx)
	}
}

func (d *fold) beginning(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, historyWait)
	defer cancel()
	return d.f.log.OffsetAt(ctx, event.TopicEvents, d.partition, time.Now().Add(-d.f.cfg.SnapshotHistory))
}

// begin makes the floor empty, to be folded from the offset.
func (d *fold) begin(from int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.floor, d.at, d.last, d.caught = floor.New(d.bounds), place{from, -1}, 0, time.Time{}
}

// follow reads until something fails. A hole in the log makes what was folded
// worthless: lost says so, and where the log goes on.
func (d *fold) follow(ctx context.Context) (from int64, lost bool) {
	reader := d.f.log.Reader(event.TopicEvents, d.partition, d.at.next)
	defer reader.Close()
	d.reads(reader)
	defer d.reads(nil)
	for {
		records, err := reader.Read(ctx)
		if err == nil {
			d.f.admitAccounts(ctx, records)
			d.apply(records, time.Now(), reader.Lag())
			continue
		}
		if ctx.Err() != nil {
			return 0, false
		}
		d.f.foldFailed("reading events", err)
		pause(ctx, time.Second)
		return beyond(err, d.at.next)
	}
}

// beyond is where a log goes on after a hole at the offset.
func beyond(err error, offset int64) (next int64, hole bool) {
	var gone *kafka.OffsetError
	var damaged *kafka.CorruptError
	switch {
	case errors.As(err, &gone):
		return min(max(offset, gone.First), gone.Next), true
	case errors.As(err, &damaged):
		return max(offset, damaged.Next), true
	}
	return offset, false
}

func (d *fold) reads(r Reader) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reader = r
}

var messageKeys = jsonscan.KeysOf("timestamp", "data")

// apply folds records that were read at that time.
func (d *fold) apply(records []kafka.Record, read time.Time, lag int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _, dropped := d.floor.Sizes()
	for i := range records {
		r := &records[i]
		d.at.next = r.Offset + 1
		id, ok := messageID(r.Value)
		if !ok {
			continue
		}
		if p, err := event.ParsePosition(string(r.Header(event.HeaderPosition))); err == nil {
			if p.Offset <= d.at.source {
				continue // a repeat, as in stream.round
			}
			d.at.source = p.Offset
		}
		d.last = max(d.last, id)
		if m, ok := d.message(r, id); ok {
			d.floor.Apply(m)
		}
	}
	_, _, now := d.floor.Sizes()
	d.f.metrics.foldDropped.Add(float64(now - dropped))
	if d.lag = lag; lag == 0 {
		d.caught = read
	}
}

// message is what a floor needs of the record; ok is false when it needs none.
func (d *fold) message(r *kafka.Record, id event.ID) (m floor.Message, ok bool) {
	m = floor.Message{ID: id, Type: event.Type(d.strings.get(r.Header(event.HeaderType)))}
	var got [2]jsonscan.Value
	if !floor.Matters(m.Type) || messageKeys.Scan(r.Value, got[:]) != nil {
		return m, false
	}
	var err error
	m.Timestamp, err = strconv.ParseInt(string(got[0]), 10, 64)
	m.Data = got[1]
	m.Account = d.strings.get(r.Header(event.HeaderAccount))
	m.Format = d.strings.get(r.Header(event.HeaderOriginalFormat))
	return m, err == nil
}

// current is when the floor last held all that the log did; zero: never yet.
// The caller holds mu.
func (d *fold) current() time.Time {
	caught := d.caught
	if d.reader != nil {
		if idle := d.reader.Idle(); idle.After(caught) {
			caught = idle
		}
	}
	return caught
}

// admitAccounts does for a floor what know does for deliveries: what it holds
// must not be hidden from a snapshot because its account is too new.
func (f *Fanout) admitAccounts(ctx context.Context, records []kafka.Record) {
	tree, asked := f.directory.Tree(), ""
	for i := range records {
		account := records[i].Header(event.HeaderAccount)
		if string(account) == asked {
			continue
		}
		asked = string(account)
		if _, ok := tree.Account(asked); ok {
			continue
		}
		if _, _, err := f.directory.Lookup(ctx, asked); err != nil && ctx.Err() == nil {
			f.foldFailed("looking up an account", err)
		}
		tree = f.directory.Tree()
	}
}

func (f *Fanout) foldFailed(doing string, err error) {
	f.logger.Warn("folding events for snapshots failed", "doing", doing, "error", err)
	f.metrics.streamErrors.WithLabelValues("snapshot").Inc()
}
