package embedded

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// runRound makes durable what was appended to the waiting partitions before it began.
func (d *durability) runRound([]struct{}) error {
	if err := d.rejectionError(); err != nil {
		return err
	}

	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return os.ErrClosed
	}

	// Taken before the work: a change that comes during it belongs to the next round.
	topicsChanged := d.topicsChanged
	d.topicsChanged = false

	logs := make([]*partitionLog, 0, len(d.waiting))
	for p := range d.waiting {
		l := d.logs[p]
		deleted := l != nil && l.isDeleted()
		if deleted { // by a request that may be answered after this round
			l.forget()
			topicsChanged = true
		}

		// A new one, since a checkpoint may be syncing the files of the deleted topic.
		if deleted || l == nil {
			l = newPartitionLog(d.dir, p)
			d.logs[p] = l
		}
		logs = append(logs, l)
	}

	clear(d.waiting)
	d.mu.Unlock()

	err := d.writeJournal(logs)
	if err == nil && topicsChanged {
		err = d.forgetDeleted()
	}

	return d.recordError(err)
}

// writeJournal copies into the journal what was appended to logs since it was last called for
// them, and syncs the journal.
func (d *durability) writeJournal(logs []*partitionLog) error {
	// At three quarters, so that the current file has room left while the other one is still in use.
	if d.journal.isNearlyFull() && d.isCheckpointDone() {
		err := d.startCheckpoint()
		if err != nil && !errors.Is(err, syscall.ENOSPC) { // without space the current file is filled
			return err
		}
	}

	d.records = d.records[:0]
	for _, l := range logs {
		before := len(d.records)
		var err error
		d.records, err = l.appendRecords(d.records, d.journal.generation, &d.buffers)
		if len(d.records) > before {
			d.unsynced[l] = struct{}{}
		}
		if err != nil {
			return err
		}
	}

	if len(d.records) == 0 {
		return nil
	}
	if !d.journal.fits(len(d.records)) { // large batches, or a disk on which a checkpoint takes long
		return d.syncUnsynced()
	}

	err := d.journal.write(d.records)
	if errors.Is(err, syscall.ENOSPC) { // kfake, which could still write these batches, rejects the next ones
		return d.syncUnsynced()
	}

	return err
}

// startCheckpoint syncs the files that have bytes in the journal's current file, and
// continues with the other one. Its own files must be synced.
func (d *durability) startCheckpoint() error {
	if err := d.journal.switchFile(); err != nil {
		return err
	}

	logs := d.unsynced
	// They are opened again when they are read: partitions without writes hold no files open.
	for l := range logs {
		l.close()
	}

	d.unsynced = map[*partitionLog]struct{}{}
	done := make(chan struct{})
	d.checkpoint = done
	go func() {
		defer close(done)
		_ = d.recordError(d.syncLogs(logs)) // the next round returns it
	}()

	return nil
}

func (d *durability) isCheckpointDone() bool {
	select {
	case <-d.checkpoint:
		return true
	default:
		return false
	}
}

// syncUnsynced syncs the files of the log that have bytes in the journal, and clears it.
func (d *durability) syncUnsynced() error {
	// clear empties both files, and the other one may still be the only durable copy of its bytes.
	<-d.checkpoint
	if err := d.rejectionError(); err != nil {
		return err
	}
	if err := d.syncLogs(d.unsynced); err != nil {
		return err
	}
	clear(d.unsynced)
	return d.journal.clear()
}

// syncLogs syncs the files of partitions, several at a time: file systems combine the commits.
func (d *durability) syncLogs(logs map[*partitionLog]struct{}) error {
	const atOnce = 4
	queue := make(chan *partitionLog)
	errs := make([]error, atOnce)
	var syncing sync.WaitGroup

	for i := range errs {
		syncing.Go(func() {
			for l := range queue {
				errs[i] = errors.Join(errs[i], l.sync(d))
			}
		})
	}

	for l := range logs {
		queue <- l
	}

	close(queue)
	syncing.Wait()
	return errors.Join(errs...)
}

// forgetDeleted syncs the list of topics, and removes what is known of deleted ones: the
// journal would restore their files.
func (d *durability) forgetDeleted() error {
	// With it the journal is cleared: no record of a deleted topic is left to be replayed.
	err := d.syncUnsynced()
	// The directories first: a topic that was created again must not begin with files of the deleted one.
	for _, path := range []string{filepath.Join(d.dir, partitionsName), filepath.Join(d.dir, "topics.json"), d.dir} {
		err = errors.Join(err, d.syncFile(path))
	}

	d.mu.Lock()
	defer d.mu.Unlock()

	maps.DeleteFunc(d.logs, func(_ partition, l *partitionLog) bool {
		_, statErr := os.Lstat(l.path())
		if !errors.Is(statErr, os.ErrNotExist) {
			return false
		}
		l.forget()
		return true
	})

	return err
}

// maxRest bounds the time between two rounds.
const maxRest = 2 * time.Millisecond

// restAfter returns how long the rounds rest after one that took so long: where callers come faster
// than a sync, each round is then of more of them.
func restAfter(took time.Duration) time.Duration { return min(2*took, maxRest) }
