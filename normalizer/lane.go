package normalizer

import (
	"context"
	"fmt"
	"time"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
)

// lane is one raw partition being worked on, by one goroutine.
type lane struct {
	*Normalizer
	*route
	Lane
	prev    event.ID // the id of the last record that is done, 0: none
	resume  int64    // records below are done: they only step the ids on
	next    int64    // offset after the last record seen
	batch   batch
	careful bool // a batch was refused as too large: one record at a time
}

// work works on one lane until ctx ends or something unexpected happens; then
// the group starts it again, from the log.
func (n *Normalizer) work(ctx context.Context, at Lane) error {
	r, ok := routes[at.Topic]
	if !ok {
		return fmt.Errorf("%q is not a raw topic", at.Topic)
	}
	l := &lane{Normalizer: n, route: r, Lane: at, batch: batch{
		route: r, partition: at.Partition, accounts: n.deps.Accounts,
		limit: n.cfg.MaxRecordBytes, log: n.log, tally: newTally(),
		traces: traces{tracer: n.deps.Tracer, group: n.cfg.Group},
	}}
	if err := l.takeOver(ctx); err != nil {
		return fmt.Errorf("taking over %s/%d: %w", at.Topic, at.Partition, err)
	}
	for {
		if err := l.follow(ctx); err != nil {
			return fmt.Errorf("normalizing %s/%d: %w", at.Topic, at.Partition, err)
		}
	}
}

// follow normalizes what comes until ctx ends, or a hole in the log makes it
// necessary to read on behind it.
func (l *lane) follow(ctx context.Context) error {
	reader := l.deps.Log.Read(l.raw, l.Partition, l.next)
	defer reader.Close()
	for {
		var records []kafka.Record
		err := l.persist(ctx, "reading", func() (err error) {
			records, err = reader.Read(ctx)
			return err
		})
		if err != nil {
			return l.skipHole(err)
		}
		records = l.stepOver(records)
		for len(records) > 0 {
			taken, err := l.some(ctx, records)
			if err != nil {
				return err
			}
			records = records[taken:]
		}
		l.careful = false
	}
}

// stepOver takes the records that are known to be done off the front. They
// only step the ids on.
func (l *lane) stepOver(records []kafka.Record) []kafka.Record {
	for len(records) > 0 && records[0].Offset < l.resume {
		l.prev = event.NextID(l.prev, records[0].Time.UnixMilli(), l.Partition)
		l.next = records[0].Offset + 1
		records = records[1:]
	}
	return records
}

// some normalizes as many of the records as make one batch, makes the outcome
// durable, and commits.
func (l *lane) some(ctx context.Context, records []kafka.Record) (taken int, err error) {
	b := &l.batch
	if err := l.normalize(ctx, records); err != nil {
		return 0, err
	}
	if err := l.inter(ctx, b.dead); err != nil {
		return 0, err
	}
	err = l.produce(ctx, b.events)
	if fault.KindOf(err) == fault.KindTooLarge {
		return l.refused(ctx, records)
	}
	if err != nil {
		return 0, err
	}
	l.done(records[:b.taken])
	return b.taken, nil
}

// maxFailures is how often a record may fail, one time after another in one
// worker, before it becomes a dead letter. persist's waits lie between: about
// 6 seconds. Errors that say something is away do not count.
const maxFailures = 8

// normalize fills the batch from the front of records with one record at
// least. Records before one that fails are a batch of their own, so that they
// are not held back.
func (l *lane) normalize(ctx context.Context, records []kafka.Record) error {
	b := &l.batch
	limit := len(records)
	if l.careful {
		limit = 1
	}
	failures := 0
	return l.persist(ctx, "normalizing", func() error {
		b.reset(l.prev)
		err := b.fill(ctx, records, limit)
		if b.taken > 0 || err == nil {
			return nil
		}
		if unavailable(err) || ctx.Err() != nil {
			return err
		}
		if failures++; failures < maxFailures {
			return fault.Unavailable(err, 0, "normalizing a record failed")
		}
		l.log.Error("record keeps failing, it becomes a dead letter", "topic", l.raw, "partition", l.Partition,
			"offset", records[0].Offset, "failures", failures, "err", err)
		b.rejectFirst(&records[0], l.prev, format.Rejectf(Internal, "normalizing it failed %d times", failures))
		return nil
	})
}

// refused deals with a batch that its topic does not take, which has a smaller
// limit than we were told: one record at a time tells which is too large, and
// that one is a dead letter.
func (l *lane) refused(ctx context.Context, records []kafka.Record) (taken int, err error) {
	b := &l.batch
	if b.taken > 1 {
		l.careful = true
		return 0, nil
	}
	b.rejectFirst(&records[0], l.prev, tooLarge())
	if err := l.inter(ctx, b.dead); err != nil {
		return 0, err
	}
	l.done(records[:1])
	return 1, nil
}

// done says that the records are: their outcome is durable.
func (l *lane) done(records []kafka.Record) {
	l.prev = l.batch.last
	l.batch.traces.done()
	l.next = records[len(records)-1].Offset + 1
	l.Commit(l.next)
	l.metrics.add(l.raw, &l.batch.tally)
	l.metrics.batch.Observe(float64(len(records)))
	l.metrics.delay.Observe(time.Since(records[0].Time).Seconds())
}

// inter makes dead letters durable. One that cc.dead does not take goes there
// without its value, which is still where its headers say.
func (l *lane) inter(ctx context.Context, dead []kafka.Record) error {
	err := l.produce(ctx, dead)
	if fault.KindOf(err) != fault.KindTooLarge {
		return err
	}
	if len(dead) > 1 {
		for i := range dead {
			if err := l.inter(ctx, dead[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	l.log.Error("a dead letter is larger than its topic takes, it goes there without its value",
		"topic", l.raw, "partition", l.Partition, "bytes", len(dead[0].Value))
	dead[0].Value = nil
	return l.produce(ctx, dead)
}

func (l *lane) produce(ctx context.Context, records []kafka.Record) error {
	if len(records) == 0 {
		return nil
	}
	return l.persist(ctx, "producing", func() error { return l.deps.Producer.Produce(ctx, records...) })
}
