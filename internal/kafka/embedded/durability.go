package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"trunkline/internal/rounds"
)

// durability syncs the log before the broker sends anything that depends on it: the
// acknowledgement of a batch, and a fetch response that may contain it. kfake ignores
// errors of Sync, so its own syncing is disabled.
//
// What waits is synced in rounds, all partitions together: a round copies what was appended
// to their files into the journal and syncs that. The files themselves are synced later, when
// one of the journal's two files is full.
//
// The first error stops all writes until the process restarts: after a failed fsync
// the kernel may drop the dirty pages, and a later fsync of the same file succeeds
// without them.
type durability struct {
	dir      string // kfake's data directory
	fsync    func(*os.File) error
	syncData func(*os.File) error // of the journal
	journal  *journal             // nil before recover
	log      *slog.Logger
	metrics  *metrics

	// deletionMu is held by a request that deletes topics, from before kfake has it, and for reading while
	// records are copied or deleted by the name of their topic.
	deletionMu sync.RWMutex

	mu              sync.Mutex
	firstErr        error // of a sync; nil: none
	requestCount    int64 // number of produce requests so far
	inFlight        map[partition]*unanswered
	paused          map[partition]chan struct{} // see pause; closed by resume
	logs            map[partition]*partitionLog // to which something was appended, or requests are registered
	waiting         map[partition]struct{}      // to be read by the next round
	topicsChanged   bool                        // topics were created, changed or deleted since the last round began
	closed          bool                        // no further round touches the log
	groupRounds     rounds.Queue[struct{}]      // syncs the committed offsets
	partitionRounds rounds.Queue[struct{}]      // runRound

	// Used by one round at a time.
	buffers    readBuffers
	records    []byte                     // for the journal
	unsynced   map[*partitionLog]struct{} // with bytes in the journal's current file
	checkpoint chan struct{}              // closed when the files with bytes in the journal's other file are synced
}

type partition struct {
	topic  string
	number int32
}

// unanswered counts the produce requests of a partition without a response. Their
// batches may be in the log but not synced.
type unanswered struct {
	requests int
	// abandoned is the number of the last produce request whose connection closed
	// before its response; 0: none. Its batch may still be appended.
	abandoned int64
}

func newDurability(dir string, m *metrics, log *slog.Logger) *durability {
	// A checkpoint that is done, for the first round.
	synced := make(chan struct{})
	close(synced)
	d := &durability{
		dir: dir, fsync: (*os.File).Sync, syncData: syncData, log: log, metrics: m,
		inFlight: map[partition]*unanswered{}, paused: map[partition]chan struct{}{},
		logs:    map[partition]*partitionLog{},
		waiting: map[partition]struct{}{}, unsynced: map[*partitionLog]struct{}{}, checkpoint: synced,
	}
	d.partitionRounds.Run, d.partitionRounds.Rest = d.runRound, restAfter
	d.groupRounds.Run, d.groupRounds.Rest = d.syncGroupsLog, restAfter

	return d
}

// rejectionError returns the reason for which the broker rejects writes, nil while it accepts
// them.
func (d *durability) rejectionError() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.firstErr
}

// beginRequest registers a produce request before kfake receives it, and returns its number.
// It returns an error after a failed sync, and errPaused while one of the partitions
// is paused, unless the request is internal.
func (d *durability) beginRequest(partitions []partition, internal bool) (number int64, err error) {
	var opened map[partition]*partitionLog
	defer func() {
		for _, l := range opened { // those that registerOpened did not need
			l.forget()
		}
	}()

	for {
		number, unopened, err := d.registerOpened(partitions, internal, opened)
		if err != nil || unopened == nil {
			return number, err
		}

		if opened == nil {
			opened = make(map[partition]*partitionLog)
		}

		// Without the lock: up to a segment of each partition is read.
		for _, p := range unopened {
			if opened[p] == nil { // a request may name a partition twice
				opened[p] = openPartitionLog(d.dir, p)
			}
		}
	}
}

// registerOpened registers a produce request, unless it is the first one of partitions whose
// logs are not in opened: these it returns. It removes from opened what it keeps.
func (d *durability) registerOpened(partitions []partition, internal bool,
	opened map[partition]*partitionLog) (number int64, unopened []partition, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()

	// Before kfake has it: a batch that was refused is not in the log.
	if d.firstErr != nil {
		return 0, nil, d.firstErr
	}

	for _, p := range partitions {
		if d.paused[p] != nil && !internal {
			return 0, nil, errPaused
		}
		if d.isUnused(p) && opened[p] == nil {
			unopened = append(unopened, p)
		}
	}

	if unopened != nil {
		return 0, unopened, nil
	}

	d.requestCount++
	for _, p := range partitions {
		if d.isUnused(p) {
			d.logs[p] = opened[p]
			delete(opened, p)
		}
		if d.inFlight[p] == nil {
			d.inFlight[p] = &unanswered{}
		}
		d.inFlight[p].requests++
	}

	return d.requestCount, nil, nil
}

// isUnused reports whether nothing was appended to a partition by this process, so that all that is
// there is synced. That still holds for what was read of it before: whatever registers a request to it
// leaves its log, until the topic is deleted, and then the directory that was read is another one. The
// caller holds mu.
func (d *durability) isUnused(p partition) bool { return d.logs[p] == nil && d.inFlight[p] == nil }

// finishRequest syncs the partitions of an appended produce request.
func (d *durability) finishRequest(number int64, partitions []partition) error {
	err := d.syncPartitions(partitions)
	d.mu.Lock()
	defer d.mu.Unlock()

	for _, p := range partitions {
		u := d.inFlight[p]
		u.requests--
		// This request began after the abandoned one, whose batch kfake has appended before it, if at all.
		if u.requests == 0 && u.abandoned < number {
			delete(d.inFlight, p)
		}
	}

	return err
}

// abandonRequest records that a produce request will not be answered. kfake may append its
// batch later, so the partition counts as in flight until a later request has
// finished.
func (d *durability) abandonRequest(partitions []partition) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range partitions {
		d.inFlight[p].requests--
		d.inFlight[p].abandoned = d.requestCount
	}
}

// syncInFlight syncs every partition that may have unsynced batches.
func (d *durability) syncInFlight() error {
	d.mu.Lock()
	partitions := make([]partition, 0, len(d.inFlight))
	for p := range d.inFlight {
		partitions = append(partitions, p)
	}
	d.mu.Unlock()
	return d.syncPartitions(partitions)
}

// syncPartitions makes durable what was appended to partitions.
func (d *durability) syncPartitions(partitions []partition) error {
	if len(partitions) == 0 {
		return nil
	}

	d.mu.Lock()
	for _, p := range partitions {
		d.waiting[p] = struct{}{}
	}
	d.mu.Unlock()

	return d.partitionRounds.Do(context.Background(), struct{}{})
}

// syncTopics makes the creation, change or deletion of topics durable, before which nothing
// of a deleted topic may be left in the journal.
func (d *durability) syncTopics() error {
	d.mu.Lock()
	d.topicsChanged = true
	d.mu.Unlock()

	return d.partitionRounds.Do(context.Background(), struct{}{})
}

// syncGroups syncs the committed offsets.
func (d *durability) syncGroups() error { return d.groupRounds.Do(context.Background(), struct{}{}) }

// syncGroupsLog is a round of syncGroups.
func (d *durability) syncGroupsLog([]struct{}) error {
	// The file is there before the first commit: kfake writes its whole state when it makes the directory.
	return d.recordError(d.syncFile(filepath.Join(d.dir, "groups.log")))
}

// recover writes again what an earlier process left in the journal, syncs everything that it
// left in the page cache, and begins the journal anew.
func (d *durability) recover(dir string, journalSize int64) error {
	if err := replayJournal(dir, d.dir, d.log); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(d.dir, partitionsName), 0o755); err != nil {
		return fmt.Errorf("making the log's directory: %w", err)
	}
	// After the replay, which may have written indexes, and before kfake reads them.
	if err := repairIndexes(d.dir); err != nil {
		return err
	}
	// Before the journal is cleared, which until then is the only durable copy.
	if err := d.syncAll(); err != nil {
		return err
	}

	journal, err := openJournal(dir, journalSize, func(f *os.File) error { return d.syncData(f) })
	if err != nil {
		return err
	}

	d.journal = journal
	return d.syncFile(dir)
}

// close syncs what kfake wrote when it stopped, and clears the journal.
func (d *durability) close() error {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()

	d.partitionRounds.Settle() // those of a connection that was just closed
	<-d.checkpoint
	for _, l := range d.logs {
		l.forget()
	}

	err := d.syncAll()
	if err == nil && d.rejectionError() == nil { // else the journal may have what the files lack
		err = d.journal.clear()
	}

	return errors.Join(err, d.journal.close())
}

// syncAll syncs every file of the log.
func (d *durability) syncAll() error {
	err := filepath.WalkDir(d.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() && !entry.Type().IsRegular() {
			return err
		}
		return d.syncFile(path)
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}

	return d.recordError(err)
}

// recordError records the error of a sync and returns the first one recorded; nil for nil.
func (d *durability) recordError(err error) error {
	if err == nil {
		return nil
	}

	d.metrics.syncFailures.Inc()
	d.mu.Lock()
	defer d.mu.Unlock()

	if d.firstErr == nil {
		d.firstErr = fmt.Errorf(
			"the embedded broker could not write its log to disk and takes no writes until the next start: %w", err)
		d.metrics.writable.Set(0)
		d.log.Error("embedded broker: log sync failed, no more writes until the next start", "error", err)
	}

	return d.firstErr
}

// syncFile syncs a file or a directory. Opening it again does not lose an error: Linux
// reports an unreported error to the next fsync.
func (d *durability) syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.fsync(f), f.Close())
}
