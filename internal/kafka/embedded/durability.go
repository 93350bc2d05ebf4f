package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// durability syncs the log before the broker sends anything that depends on it: the
// acknowledgement of a batch, and a fetch response that may contain it. kfake ignores
// errors of Sync, so its own syncing is disabled.
//
// The first error stops all writes until the process restarts: after a failed fsync
// the kernel may drop the dirty pages, and a later fsync of the same file succeeds
// without them.
type durability struct {
	dir   string // kfake's data directory
	fsync func(*os.File) error
	log   *slog.Logger

	metrics *metrics

	mu           sync.Mutex
	firstErr     error // of a sync; nil: none
	requestCount int64 // number of produce requests so far
	inFlight     map[partition]*unanswered
	paused       map[partition]chan struct{} // see pause; closed by resume
	logs         map[partition]*partitionLog
	groupsLog    syncRounds
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
	return &durability{
		dir: dir, fsync: (*os.File).Sync, log: log, metrics: m,
		inFlight: map[partition]*unanswered{}, paused: map[partition]chan struct{}{}, logs: map[partition]*partitionLog{},
	}
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
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.firstErr != nil {
		return 0, d.firstErr
	}
	for _, p := range partitions {
		if d.paused[p] != nil && !internal {
			return 0, errPaused
		}
	}
	d.requestCount++
	for _, p := range partitions {
		if d.inFlight[p] == nil {
			d.inFlight[p] = &unanswered{}
		}
		d.inFlight[p].requests++
	}
	return d.requestCount, nil
}

// finishRequest syncs the partitions of an appended produce request.
func (d *durability) finishRequest(number int64, partitions []partition) error {
	err := d.syncPartitions(partitions)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range partitions {
		u := d.inFlight[p]
		u.requests--
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

func (d *durability) syncPartitions(partitions []partition) error {
	errs := make([]error, len(partitions))
	var syncing sync.WaitGroup
	for i, p := range partitions[min(1, len(partitions)):] { // in parallel: file systems combine the commits
		syncing.Go(func() { errs[i+1] = d.partitionLog(p).sync() })
	}
	if len(partitions) > 0 {
		errs[0] = d.partitionLog(partitions[0]).sync()
	}
	syncing.Wait()
	return d.recordError(errors.Join(errs...))
}

// syncGroups syncs the committed offsets.
func (d *durability) syncGroups() error {
	return d.recordError(d.groupsLog.sync(func() error { return d.syncFile(filepath.Join(d.dir, "groups.log")) }))
}

// syncAll syncs every file of the log: data that a killed process left in the page
// cache, and the data that kfake writes when it stops.
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
		d.firstErr = fmt.Errorf("the embedded broker could not write its log to disk and takes no writes until the next start: %w", err)
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

func (d *durability) partitionLog(p partition) *partitionLog {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.logs[p]
	if l == nil {
		dir := filepath.Join(d.dir, "partitions", fmt.Sprintf("%s-%d", url.PathEscape(p.topic), p.number))
		l = &partitionLog{durability: d, dir: dir, newestBase: -1}
		d.logs[p] = l
	}
	return l
}

// partitionLog is the directory of one partition: segment files, each named by its
// first offset, and an index file per segment, which has the leader epochs of the
// batches.
type partitionLog struct {
	*durability
	dir        string
	rounds     syncRounds
	newestBase int64 // base offset of the newest synced segment; -1: none
}

func (l *partitionLog) sync() error { return l.rounds.sync(l.syncSegments) }

// syncSegments syncs the segments that may have changed since the last call, and the
// directories if there is a new segment.
func (l *partitionLog) syncSegments() error {
	bases, err := segmentBases(l.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) { // no files, as for a deleted topic
		return err
	}
	newestBase := int64(-1)
	for _, base := range bases {
		newestBase = max(newestBase, base)
	}
	from := l.newestBase
	if newestBase < from { // the topic was deleted and recreated
		from = -1
	}
	for _, base := range bases {
		if base < from {
			continue
		}
		for _, name := range []string{segmentName(base), indexName(base)} {
			err := l.syncFile(filepath.Join(l.dir, name))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	if newestBase != l.newestBase && newestBase >= 0 {
		if err := l.syncFile(l.dir); err != nil {
			return err
		}
		if err := l.syncFile(filepath.Dir(l.dir)); err != nil {
			return err
		}
	}
	l.newestBase = newestBase
	return nil
}

const segmentSuffix = ".dat"

func segmentName(base int64) string { return strconv.FormatInt(base, 10) + segmentSuffix }
func indexName(base int64) string   { return strconv.FormatInt(base, 10) + ".idx" }

// segmentBases lists the base offsets of the segments in a partition's
// directory.
func segmentBases(dir string) ([]int64, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	err = errors.Join(err, f.Close())
	if err != nil {
		return nil, err
	}
	var bases []int64
	for _, name := range names {
		digits, isSegment := strings.CutSuffix(name, segmentSuffix)
		base, err := strconv.ParseInt(digits, 10, 64)
		if isSegment && err == nil {
			bases = append(bases, base)
		}
	}
	return bases, nil
}

// syncRounds lets callers that arrive during a sync share the next one.
type syncRounds struct {
	mu      sync.Mutex
	next    *syncRound
	running sync.Mutex
}

type syncRound struct {
	done chan struct{}
	err  error
}

// sync returns after a call of f that began after the call of sync.
func (s *syncRounds) sync(f func() error) error {
	s.mu.Lock()
	r, first := s.next, s.next == nil
	if first {
		r = &syncRound{done: make(chan struct{})}
		s.next = r
	}
	s.mu.Unlock()
	if !first {
		<-r.done
		return r.err
	}
	s.running.Lock()
	defer s.running.Unlock()
	s.mu.Lock()
	s.next = nil
	s.mu.Unlock()
	r.err = f()
	close(r.done)
	return r.err
}
