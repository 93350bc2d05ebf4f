// Package consume is the consumer of a log whose results are in the database: it stores the records of each partition
// in batches, each with the position after it in one transaction.
//
// A transaction begins by moving the position from where the batch was read. If two processes have a partition at the
// same time, one of them finds the position moved, and starts again behind it: nothing is stored twice or left out.
// Positions are in one table for all consumers (log_positions).
//
// A log that does not continue at the position has one rule: look again, as a leader may only be behind; else continue
// where the log does, and count in the position's generation a log that was created again. What was lost is for the
// package to say (Config.Lost).
//
// Consumer.Run has one goroutine for each partition that the group assigns and those of Config.Beside, which end with
// its context; a partition's holds one batch. At most maxStores of them write at once. While the log or the database
// is unavailable they wait, and new records stay in the log. There are no locks.
package consume

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/kafka"
	"trunkline/internal/lag"
	"trunkline/internal/retry"
	"trunkline/internal/sqldb"
)

// maxStores is the number of batches that a consumer stores at once, of the 16 connections of a process: the rest is
// for others.
const maxStores = 4

// Config describes a consumer.
type Config struct {
	LogReader kafka.Log
	Topic     string
	Group     string
	Compacted bool // the topic is
	Positions *Positions
	Limits    Limits

	NewBatch func(partition int) Batch
	// Waits is called before an action is repeated, because the log or the database is unavailable.
	Waits func(partition int, action string, err error, wait time.Duration)
	// Moved is called when another process was found to have the partition.
	Moved func(partition int)
	// Lost is called when the partition has continued behind a gap.
	Lost func(partition int, at Position, gap *kafka.GapError)
	// Beside run in goroutines of their own while the consumer runs, and end with their context.
	Beside []func(context.Context)
	Delay  prometheus.Observer // of the seconds from the time of a batch's first record until it is stored
	Lag    *lag.Collector      // nil: none
}

// Batch is what a package makes of the records that it stores at once. It is used by one goroutine.
type Batch interface {
	// Reset empties it.
	Reset()
	// Add adds a record of the topic's generation. The record is valid during the call only.
	Add(r *kafka.Record, generation int64)
	// Store stores what was added, in one transaction that begins with move. It may be called again after an error.
	Store(ctx context.Context, move func(context.Context, *sqldb.BulkTx) error) error
}

// ActionRead is the action of Config.Waits that reads the log; all others store.
const ActionRead = "reading"

// Consumer stores the records of a topic. Any number may run at the same time.
type Consumer struct {
	Config
	stores chan struct{} // semaphore of maxStores
}

// New returns a consumer. It does nothing before Run.
func New(cfg Config) *Consumer { return &Consumer{Config: cfg, stores: make(chan struct{}, maxStores)} }

// Run stores records until ctx ends, then returns nil.
func (c *Consumer) Run(ctx context.Context) error {
	var beside sync.WaitGroup
	defer beside.Wait()

	// If Work fails, those beside it end too, and Run waits for them.
	besideCtx, cancelBeside := context.WithCancel(ctx)
	defer cancelBeside()

	for _, run := range c.Beside {
		beside.Go(func() { run(besideCtx) })
	}

	err := c.LogReader.Work(ctx, kafka.GroupConfig{Group: c.Group, Topics: []string{c.Topic}}, c.runPartition)
	if err != nil {
		return fmt.Errorf("storing %s: %w", c.Topic, err)
	}

	return nil
}

// runPartition stores one partition until ctx ends or an unexpected error occurs; then the group restarts it.
func (c *Consumer) runPartition(ctx context.Context, assigned kafka.Assigned) error {
	w := &worker{Consumer: c, Assigned: assigned, batch: c.NewBatch(assigned.Partition), oldest: new(atomic.Int64)}
	if c.Lag != nil {
		oldest, done := c.Lag.Track(w.Partition)
		defer done()
		w.oldest = oldest
	}

	w.retry = retry.WhileUnavailable(func(action string, err error, wait time.Duration) {
		c.Waits(w.Partition, action, err, wait)
	})

	for {
		err := w.process(ctx)
		// A position that another process moved says nothing about the log: process reads it again.
		if ctx.Err() == nil && !errors.Is(err, ErrMoved) {
			err = w.passGap(ctx, err)
		}

		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrMoved):
			c.Moved(w.Partition)
		case err != nil:
			return fmt.Errorf("storing %s/%d: %w", w.Assigned.Topic, w.Partition, err)
		}
	}
}

// worker stores one partition, in one goroutine.
type worker struct {
	*Consumer
	kafka.Assigned
	batch    Batch
	position Position      // all records before it are stored
	oldest   *atomic.Int64 // Unix milliseconds, of the oldest record not stored yet; 0: none
	retry    retry.Func
}

// process stores new records, from the position in the database on.
func (w *worker) process(ctx context.Context) error {
	var from kafka.LogPosition
	err := w.retry(ctx, "taking over", func() (err error) {
		from, err = w.takeOver(ctx)
		return err
	})
	if err != nil {
		return err
	}

	source := w.LogReader.Read(kafka.ReaderConfig{Topic: w.Config.Topic, Partition: w.Partition, From: from,
		Compacted: w.Compacted})
	defer source.Close()

	for {
		var found BatchContents
		err := w.retry(ctx, ActionRead, func() (err error) {
			// Within the repeated action: what a failed reading has added would be added again.
			w.batch.Reset()
			found, err = w.Limits.Gather(ctx, source, func(r *kafka.Record) { w.batch.Add(r, w.position.Generation) })
			return err
		})
		if err == nil {
			err = w.checkEpoch(ctx, found.firstEpoch)
		}
		if err == nil {
			w.oldest.Store(found.Oldest.UnixMilli())
			err = w.storeBatch(ctx, source.Position())
		}
		if err != nil {
			return err
		}

		w.Delay.Observe(time.Since(found.Oldest).Seconds())
		w.oldest.Store(0)
		if source.Lag() > 0 {
			// The time of the next record is not known yet: it is not before that of the last one stored.
			w.oldest.Store(found.newest.UnixMilli())
		}
	}
}

// takeOver reads the position in the database, checks it against the log, and returns where to read.
func (w *worker) takeOver(ctx context.Context) (from kafka.LogPosition, err error) {
	first, _, err := w.LogReader.Offsets(ctx, w.Config.Topic, w.Partition)
	if err != nil {
		return from, err
	}

	w.position, err = w.Positions.FindOrCreate(ctx, w.Partition, first)
	if err == nil {
		err = w.checkPosition(ctx)
	}
	if err != nil {
		return from, err
	}

	from = w.position.LogPosition
	// Fixed before the first read, so that a topic created again during the first batch is noticed.
	if from.TopicID.IsZero() {
		from.TopicID, err = w.LogReader.TopicID(ctx, w.Config.Topic)
	}

	return from, err
}

func (w *worker) checkPosition(ctx context.Context) error {
	return w.LogReader.CheckPosition(ctx, w.Config.Topic, w.Partition, w.position.LogPosition)
}

// checkEpoch checks, before the first batch of another leader epoch is stored, that the new leader has the records
// stored before.
func (w *worker) checkEpoch(ctx context.Context, epoch int32) error {
	if w.position.LeaderEpoch == kafka.UnknownEpoch || w.position.LeaderEpoch == epoch {
		return nil
	}
	return w.retry(ctx, ActionRead, func() error { return w.checkPosition(ctx) })
}

// storeBatch stores the batch and the position after it.
func (w *worker) storeBatch(ctx context.Context, next kafka.LogPosition) error {
	select {
	case w.stores <- struct{}{}:
		defer func() { <-w.stores }()
	case <-ctx.Done():
		return ctx.Err()
	}

	to := Position{LogPosition: next, Generation: w.position.Generation}
	// A commit whose answer was lost makes the repeat fail with ErrMoved, after which process starts behind it.
	err := w.retry(ctx, "writing", func() error {
		return w.batch.Store(ctx, func(ctx context.Context, tx *sqldb.BulkTx) error {
			return w.Positions.Move(ctx, tx, w.Partition, w.position, &to)
		})
	})
	if err == nil {
		w.position = to
		// Only for the lag that the group shows: what counts is the position in the database.
		w.Commit(to.Offset)
	}

	return err
}

// passGap moves the position to where the log continues, if err is a gap there. It returns other errors.
func (w *worker) passGap(ctx context.Context, err error) error {
	gap, err := kafka.ConfirmGap(ctx, err, func(ctx context.Context) error {
		return w.retry(ctx, ActionRead, func() error { return w.checkPosition(ctx) })
	})
	if gap == nil {
		return err
	}

	if gap.ReusesOffsets() {
		// Commit ignores lower offsets: the group would show no lag until the log is as long as it was.
		w.CommitLower(gap.Resume)
	}

	to := Position{LogPosition: gap.Position(), Generation: w.position.Generation}
	to.TopicID = w.position.TopicID
	if gap.Kind == kafka.GapRecreated {
		// Not known yet: takeOver looks the new id up.
		to.TopicID, to.Generation = kafka.TopicID{}, to.Generation+1
	}

	err = w.retry(ctx, "skipping", func() error {
		return w.Positions.db.BulkTx(ctx, func(tx *sqldb.BulkTx) error {
			return w.Positions.Move(ctx, tx, w.Partition, w.position, &to)
		})
	})
	if err == nil {
		w.Lost(w.Partition, w.position, gap)
	}

	return err
}
