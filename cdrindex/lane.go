package cdrindex

import (
	"context"
	"sync/atomic"
	"time"

	"trunkline/internal/sqldb"
)

// lane is one partition being indexed, by one goroutine.
type lane struct {
	*Indexer
	partition int
	done      func(next int64)
	oldest    *atomic.Int64 // time of the oldest record at hand, 0: none
	at        position      // all before it is in the database
}

// follow indexes what comes, from where the database says that the index is.
func (l *lane) follow(ctx context.Context) error {
	err := l.persist(ctx, "taking over", func() error {
		first, _, err := l.topic.Offsets(ctx, l.partition)
		if err == nil {
			l.at, err = l.position(ctx, l.partition, first)
		}
		return err
	})
	if err != nil {
		return err
	}
	reader := l.topic.Read(l.partition, l.at.next)
	defer reader.Close()
	g := &gatherer{reader: reader, epoch: l.at.epoch, most: l.cfg.BatchRows, log: l.log, trace: l.trace}
	for {
		if err := l.persist(ctx, doingRead, func() error { return g.batch(ctx) }); err != nil {
			return err
		}
		l.oldest.Store(g.oldest.UnixMilli())
		if err := l.store(ctx, g); err != nil {
			return err
		}
		l.oldest.Store(0)
		if reader.Lag() > 0 {
			l.oldest.Store(g.newest.UnixMilli())
		}
	}
}

// store makes a batch's rows and the offset after it durable together.
func (l *lane) store(ctx context.Context, g *gatherer) error {
	to := position{g.reader.Next(), l.at.epoch}
	b := batch{entries: g.entries, fence: func(ctx context.Context, tx *sqldb.Loader) error {
		return advance(ctx, tx, l.partition, l.at, to)
	}}
	select {
	case l.turns <- struct{}{}:
		defer func() { <-l.turns }()
	case <-ctx.Done():
		return ctx.Err()
	}
	err := l.persist(ctx, "writing", func() error {
		_, err := l.apply(ctx, b)
		return err
	})
	if err != nil {
		return err
	}
	l.at = to
	l.done(to.next)
	l.metrics.stored(g)
	g.stored()
	return nil
}

const doingRead = "reading"

// How long a lane waits for what is away: at first, and at most.
const (
	firstWait = 50 * time.Millisecond
	mostWait  = 5 * time.Second
)

// persist does something until it succeeds. It gives up when ctx ends, and on
// an error that time does not heal.
func (l *lane) persist(ctx context.Context, doing string, do func() error) error {
	for wait := firstWait; ; wait = min(2*wait, mostWait) {
		err := do()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !unavailable(err):
			return err
		}
		l.metrics.waited(doing)
		l.log.Warn("an indexer waits", "doing", doing, "partition", l.partition, "wait", wait, "err", err)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}
