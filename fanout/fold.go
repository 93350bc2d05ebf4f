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

// fold keeps the snapshot state of one partition and its position in the log.
type fold struct {
	f         *Fanout
	partition int
	bounds    snapshot.Config
	strings   interner // of run

	mu         sync.Mutex
	state      *snapshot.State
	at         position
	last       event.ID // highest id before at; 0: none read yet
	reader     Reader
	caughtUpAt time.Time // when the end of the log was last reached; zero: never
	lag        int64     // offsets not read yet, as of the last read
}

// run applies events from the start of the snapshot history, until ctx ends.
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

// reset empties the state and sets the offset to read from.
func (d *fold) reset(from int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state != nil {
		d.state.Release()
	}
	d.state, d.at, d.last, d.caughtUpAt = snapshot.New(d.bounds), startAt(from), 0, time.Time{}
}

// foldPause is the time between fetches of a fold at the end of the log, so
// that one fetch returns several events. The first event after an idle time is
// applied at once.
const foldPause = 100 * time.Millisecond

// follow reads and applies events until a read fails. At a gap in the log it
// returns lost and the offset after the gap: the state must be rebuilt.
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

// resumeOffset returns the offset after a gap, or offset when err is not a gap.
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

// apply applies records that were read at that time.
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

// message decodes the fields that a snapshot uses. ok is false when the record
// does not change snapshots.
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

// currentAsOf returns when the state last included the whole log; zero: never.
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
