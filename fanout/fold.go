package fanout

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/fanout/snapshot"
	"trunkline/internal/jsonscan"
	"trunkline/internal/kafka"
)

// fold is the state of one partition and the place it is exact at.
type fold struct {
	f         *Fanout
	partition int
	bounds    snapshot.Config
	strings   interner // of run

	mu         sync.Mutex
	state      *snapshot.State
	at         position
	last       event.ID // the newest message before at; 0: none read yet
	reader     Reader
	caughtUpAt time.Time // when there was last nothing more to read; zero: never yet
	lag        int64     // offsets not read yet, as of the last read
}

// run folds from the beginning of the history on, until ctx ends.
func (d *fold) run(ctx context.Context) {
	from, err := d.findStart(ctx)
	for err != nil && ctx.Err() == nil {
		d.f.foldFailed("finding the beginning", err)
		pause(ctx, time.Second)
		from, err = d.findStart(ctx)
	}
	for lost := true; ctx.Err() == nil; {
		if lost {
			d.reset(from)
		}
		from, lost = d.follow(ctx)
	}
}

func (d *fold) findStart(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, historyWait)
	defer cancel()
	return d.f.log.OffsetAt(ctx, event.TopicEvents, d.partition, time.Now().Add(-d.f.cfg.SnapshotHistory))
}

// begin makes the state empty, to be folded from the offset.
func (d *fold) reset(from int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state != nil {
		d.state.Release()
	}
	d.state, d.at, d.last, d.caughtUpAt = snapshot.New(d.bounds), startAt(from), 0, time.Time{}
}

// foldPause is how long a fold that has caught up lets events gather: a fetch
// for each of them would cost a node, and the broker, as much again as
// delivering it does. An event after a silence is folded at once.
const foldPause = 100 * time.Millisecond

// follow reads until something fails. A hole in the log makes what was folded
// worthless: lost says so, and where the log goes on.
func (d *fold) follow(ctx context.Context) (from int64, lost bool) {
	reader := d.f.log.Reader(event.TopicEvents, d.partition, d.at.next)
	defer reader.Close()
	d.setReader(reader)
	defer d.setReader(nil)
	for {
		records, err := reader.Read(ctx)
		if err == nil {
			read := time.Now()
			d.f.loadRecordAccounts(ctx, records)
			d.apply(records, read, reader.Lag())
			if reader.Lag() == 0 {
				pause(ctx, foldPause)
			}
			continue
		}
		if ctx.Err() != nil {
			return 0, false
		}
		d.f.foldFailed("reading events", err)
		pause(ctx, time.Second)
		return resumeOffset(err, d.at.next)
	}
}

// beyond is where a log goes on after a hole at the offset.
func resumeOffset(err error, offset int64) (next int64, hole bool) {
	if gap, ok := errors.AsType[*kafka.GapError](err); ok {
		return gap.Resume, true
	}
	return offset, false
}

func (d *fold) setReader(r Reader) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reader = r
}

var (
	messageKeys  = jsonscan.KeysOf("timestamp", "data", "metadata")
	metadataKeys = jsonscan.KeysOf("queue_id")
)

// apply folds records that were read at that time.
func (d *fold) apply(records []kafka.Record, read time.Time, lag int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _, dropped := d.state.Sizes()
	d.f.seen.record(d.partition, d.at.next, records)
	for i := range records {
		r := &records[i]
		d.at.next, d.at.epoch = r.Offset+1, r.LeaderEpoch
		id, err := event.MessageID(r.Value)
		if err != nil {
			continue
		}
		if p, err := event.ParsePosition(string(r.Header(event.HeaderPosition))); err == nil {
			if p.Packed() <= d.at.source {
				continue // a repeat, as in partitionStream.round
			}
			d.at.source = p.Packed()
		}
		d.last = max(d.last, id)
		if m, ok := d.message(r, id); ok {
			d.state.Apply(m)
		}
	}
	_, _, now := d.state.Sizes()
	d.f.metrics.foldDropped.Add(float64(now - dropped))
	if d.lag = lag; lag == 0 {
		d.caughtUpAt = read
	}
}

// message is what a state needs of the record; ok is false when it needs none.
func (d *fold) message(r *kafka.Record, id event.ID) (m snapshot.Message, ok bool) {
	m = snapshot.Message{ID: id, Type: event.Type(d.strings.get(r.Header(event.HeaderType)))}
	var got [3]jsonscan.Value
	if !snapshot.IsRelevant(m.Type) || messageKeys.Scan(r.Value, got[:]) != nil {
		return m, false
	}
	var err error
	m.Timestamp, err = strconv.ParseInt(string(got[0]), 10, 64)
	m.Data = got[1]
	var queue [1]jsonscan.Value
	if got[2].Kind() == jsonscan.Object && metadataKeys.Scan(got[2], queue[:]) == nil {
		text, _ := queue[0].Text()
		m.Queue = string(text)
	}
	m.Account = d.strings.get(r.Header(event.HeaderAccount))
	m.Format = d.strings.get(r.Header(event.HeaderOriginalFormat))
	return m, err == nil
}

// current is when the state last held all that the log did; zero: never yet.
// The caller holds mu.
func (d *fold) currentAsOf() time.Time {
	caught := d.caughtUpAt
	if d.reader != nil {
		if idle := d.reader.Idle(); idle.After(caught) {
			caught = idle
		}
	}
	return caught
}
