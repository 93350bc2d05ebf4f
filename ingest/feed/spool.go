package feed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/event/topics"
	"trunkline/internal/retry"
	"trunkline/internal/setting"
)

// queuePosition is a place in a queue of records. Positions of one queue are ordered.
type queuePosition struct {
	segment uint64 // of the spool; 0 in a memoryQueue
	offset  int64  // in the segment's file; in a memoryQueue the number of records before it
}

func (p queuePosition) before(q queuePosition) bool {
	return p.segment < q.segment || p.segment == q.segment && p.offset < q.offset
}

var (
	// errSpoolFull is returned while unsent records take all space: that of the setting or that of the
	// disk.
	errSpoolFull = errors.New("the spool is full")
	castagnoli   = crc32.MakeTable(crc32.Castagnoli) // of all checksums in a spool
)

// spool stores records in files until Kafka has them. One goroutine appends, another one reads and
// checkpoints.
//
// A segment is a file of records. A record is its length, its CRC-32C and its bytes. Each process
// starts a new segment, so that a record that was truncated at the end of a process is the last one of
// its segment. Damaged bytes are passed up to the next whole record; the records' numbers say how many
// were lost.
//
// The checkpoint has the number of the last record before it. It is written alternately to two places of
// one file, each with a checksum, so that the previous one remains after a torn write.
type spool struct {
	dir    string
	limit  int64 // bytes of all segments
	log    *slog.Logger
	onLost func(records int) // see openSpool

	size     atomic.Int64  // of all segments
	appended chan struct{} // capacity 1: records were appended
	freed    chan struct{} // capacity 1: a segment was deleted
	openFile func(name string, flag int, mode os.FileMode) (segmentFile, error)

	// Used by the goroutine that appends.
	file        segmentFile
	writeFailed bool // the last write or sync failed: start a new segment
	buffer      []byte
	lastNumber  spoolNumber // of the last record appended

	mu              sync.Mutex
	tail            queuePosition    // after the last complete record
	sizes           map[uint64]int64 // of the segments
	unsyncedSegment segmentFile      // written to since the last sync
	syncErr         error            // of the last sync, for the next Append
	appendSegment   uint64           // the segment for appends; 0 if none

	// Used by the goroutine that reads.
	reader           *os.File      // nil until the first read
	readerSegment    uint64        // the segment that reader has open
	head             queuePosition // to read next
	lastRead         spoolNumber   // of the last record read
	reportedLost     uint64        // lost records behind lastRead that onLost was called for
	chunk            []byte        // the bytes of the entries that Next returned last
	checkpoint       *os.File
	checkpointNumber int64 // of the last checkpoint that was written
}

// segmentFile is an *os.File for writing; tests replace it by one that fails.
type segmentFile interface {
	Write(b []byte) (int, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

const (
	recordHeader     = 8 // bytes of a record's length and checksum
	segmentSuffix    = ".spool"
	checkpointName   = "checkpoint"
	checkpointSize   = 40 // bytes of each of the two places
	syncEvery        = 100 * time.Millisecond
	maxSegmentBytes  = 64 << 20
	segmentsPerSpool = 16
	// maxRecordBytes is the largest size of a record in the spool in bytes. A larger length is damaged.
	maxRecordBytes = topics.MaxRecordBytes
)

// openSpool opens the spool in dir, and creates it if necessary. lost is called, by the goroutine that
// reads, with a number of records that are damaged or missing.
func openSpool(dir string, limit setting.Bytes, lost func(records int), log *slog.Logger) (*spool, error) {
	s := &spool{
		dir: dir, limit: int64(limit), log: log, onLost: lost,
		appended: make(chan struct{}, 1), freed: make(chan struct{}, 1), sizes: map[uint64]int64{},
		openFile: func(name string, flag int, mode os.FileMode) (segmentFile, error) {
			return os.OpenFile(name, flag, mode)
		},
	}

	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the spool's folder: %w", err)
	}
	if err := s.findSegments(); err != nil {
		return nil, fmt.Errorf("reading the spool's folder: %w", err)
	}
	if err := s.openCheckpoint(); err != nil {
		return nil, fmt.Errorf("opening the spool's checkpoint: %w", err)
	}

	s.lastNumber.process = uint32(s.tail.segment + 1)
	return s, nil
}

func (s *spool) segmentPath(segment uint64) string {
	return filepath.Join(s.dir, fmt.Sprintf("%016x%s", segment, segmentSuffix))
}

// findSegments finds the segments in the folder, and the end of the last one.
func (s *spool) findSegments() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}

	for _, e := range entries {
		name, ours := strings.CutSuffix(e.Name(), segmentSuffix)
		var segment uint64
		_, err := fmt.Sscanf(name, "%016x", &segment)
		if !ours || err != nil {
			continue
		}

		info, err := e.Info()
		if err != nil {
			return err
		}

		s.sizes[segment] = info.Size()
		s.size.Add(info.Size())
		end := (queuePosition{segment, info.Size()})
		if s.tail.before(end) {
			s.tail = end
		}
	}

	return nil
}

// openCheckpoint opens the checkpoint and deletes segments before it.
func (s *spool) openCheckpoint() error {
	file, err := os.OpenFile(filepath.Join(s.dir, checkpointName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}

	s.checkpoint = file
	content := make([]byte, 2*checkpointSize)

	n, _ := file.ReadAt(content, 0) // a new file has fewer bytes
	for at := 0; at+checkpointSize <= n; at += checkpointSize {
		slot := content[at:][:checkpointSize]
		number, p, last, ok := parseCheckpoint(slot)
		if ok && number > s.checkpointNumber {
			s.checkpointNumber, s.head, s.lastRead = number, p, last
		}
	}

	for segment := range s.sizes {
		if segment < s.head.segment || segment == s.head.segment && s.head.offset >= s.sizes[segment] {
			if err := s.removeSegment(segment); err != nil {
				return err
			}
		}
	}

	// Continue with the first existing segment: segments may have been deleted by a checkpoint that was
	// not written to disk.
	if first, ok := s.firstSegmentFrom(s.head.segment); ok && first != s.head.segment {
		s.head = queuePosition{first, 0}
	}
	if s.tail.before(s.head) { // its segment was deleted: do not reuse its number
		s.tail = s.head
	}

	return nil
}

// parseCheckpoint parses one place: the checkpoint's number, the position's segment and offset, the number and
// process of the last record before it (zero in a checkpoint of an earlier version), and a checksum.
func parseCheckpoint(b []byte) (number int64, p queuePosition, last spoolNumber, ok bool) {
	sum := crc32.Checksum(b[:len(b)-4], castagnoli)
	if sum != binary.BigEndian.Uint32(b[len(b)-4:]) {
		return 0, queuePosition{}, spoolNumber{}, false
	}
	word := func(i int) uint64 { return binary.BigEndian.Uint64(b[8*i:]) }
	last = spoolNumber{binary.BigEndian.Uint32(b[32:]), word(3)}
	return int64(word(0)), queuePosition{word(1), int64(word(2))}, last, true
}

// Done stores a checkpoint: Kafka has all records before p, and they are not read again. It repeats what fails
// until ctx ends: the disk may have recovered.
func (s *spool) Done(ctx context.Context, p queuePosition) error {
	for {
		err := s.storeCheckpoint(p)
		if err == nil || ctx.Err() != nil {
			return err
		}
		s.log.Error("noting in the spool what was sent failed, will retry", "error", err)
		retry.Sleep(ctx, time.Second)
	}
}

// storeCheckpoint writes the checkpoint at p and deletes the segments before it.
func (s *spool) storeCheckpoint(p queuePosition) error {
	// Number and position belong together: of an earlier position the number is not known.
	last := s.lastRead
	if p != s.head {
		last = spoolNumber{}
	}

	// Counted only when it is written: repeats of a torn write spare the place of the checkpoint before it.
	number := s.checkpointNumber + 1
	b := make([]byte, 0, checkpointSize)
	for _, word := range []uint64{uint64(number), p.segment, uint64(p.offset), last.record} {
		b = binary.BigEndian.AppendUint64(b, word)
	}

	b = binary.BigEndian.AppendUint32(b, last.process)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	_, err := s.checkpoint.WriteAt(b, number%2*checkpointSize)
	if err != nil {
		return fmt.Errorf("writing the spool's checkpoint: %w", err)
	}

	s.checkpointNumber = number
	s.mu.Lock()
	var old []uint64
	for segment := range s.sizes {
		sent := segment < p.segment || segment == p.segment && p.offset >= s.sizes[segment]
		// The segment for appends stays, also where all of it is sent: its file is open.
		if sent && segment != s.appendSegment {
			old = append(old, segment)
		}
	}
	s.mu.Unlock()

	for _, segment := range old {
		if err := s.removeSegment(segment); err != nil {
			return fmt.Errorf("deleting a segment of the spool: %w", err)
		}
	}

	if len(old) > 0 {
		signal(s.freed)
	}

	return nil
}

// removeSegment deletes a segment's file.
func (s *spool) removeSegment(segment uint64) error {
	err := os.Remove(s.segmentPath(segment))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size.Add(-s.sizes[segment])
	delete(s.sizes, segment)
	return nil
}

// signal puts a value into a channel of capacity 1, unless it has one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// End returns the position after the last record.
func (s *spool) End() queuePosition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tail
}

// Append appends all of the records or none. The error is errSpoolFull if there is no space.
func (s *spool) Append(entries []queueEntry) error {
	s.buffer = s.buffer[:0]
	for i := range entries {
		start := len(s.buffer)
		s.buffer = append(s.buffer, make([]byte, recordHeader)...)
		entries[i].number = spoolNumber{s.lastNumber.process, s.lastNumber.record + uint64(i) + 1}
		s.buffer = appendEntry(s.buffer, &entries[i])
		body := s.buffer[start+recordHeader:]
		binary.BigEndian.PutUint32(s.buffer[start:], uint32(len(body)))
		binary.BigEndian.PutUint32(s.buffer[start+4:], crc32.Checksum(body, castagnoli))
	}

	if s.size.Load()+int64(len(s.buffer)) > s.limit {
		return errSpoolFull
	}
	if err := s.takeSyncError(); err != nil {
		s.writeFailed = true
		return fmt.Errorf("syncing the spool: %w", err)
	}

	if s.file == nil || s.writeFailed || s.End().offset >= min(maxSegmentBytes, s.limit/segmentsPerSpool) {
		if err := s.rotate(); err != nil {
			return fmt.Errorf("beginning a segment of the spool: %w", err)
		}
	}

	end := s.End()
	_, err := s.file.Write(s.buffer)
	if err != nil {
		// A partly written record is after the end, and ignored.
		s.writeFailed = true
		truncateErr := s.file.Truncate(end.offset)
		if truncateErr != nil {
			err = errors.Join(err, truncateErr)
		}
		return fmt.Errorf("writing to the spool: %w", err)
	}

	s.mu.Lock()
	s.tail.offset += int64(len(s.buffer))
	s.sizes[s.tail.segment] = s.tail.offset
	s.unsyncedSegment = s.file
	s.mu.Unlock()

	s.size.Add(int64(len(s.buffer)))
	s.lastNumber.record += uint64(len(entries))
	signal(s.appended)

	return nil
}

// rotate starts a new segment.
func (s *spool) rotate() error {
	if s.file != nil {
		err := s.syncSegments()
		closeErr := s.file.Close()
		if err == nil {
			err = closeErr
		}

		s.file = nil
		if err != nil && !s.writeFailed {
			return err
		}
	}

	next := queuePosition{s.End().segment + 1, 0}
	if s.writeFailed && s.End().offset == 0 && next.segment > 1 { // the failed segment is empty
		next.segment--
	}

	file, err := s.openFile(s.segmentPath(next.segment), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}

	s.file, s.writeFailed = file, false
	s.mu.Lock()
	s.appendSegment = next.segment
	s.tail = next
	s.sizes[next.segment] = next.offset
	s.mu.Unlock()

	return nil
}

// takeSyncError returns the error of the last sync, once.
func (s *spool) takeSyncError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.syncErr
	s.syncErr = nil
	return err
}

// syncSegments writes what was appended since the last sync to the disk.
func (s *spool) syncSegments() error {
	s.mu.Lock()
	file := s.unsyncedSegment
	s.unsyncedSegment = nil
	s.mu.Unlock()
	if file == nil {
		return nil
	}
	return file.Sync()
}

// Run writes appended records to the disk ten times a second, until ctx ends.
func (s *spool) Run(ctx context.Context) {
	for range retry.Ticks(ctx, syncEvery) {
		err := s.syncSegments()
		if err != nil && !errors.Is(err, os.ErrClosed) { // Close has synced it
			s.mu.Lock()
			s.syncErr = err
			s.mu.Unlock()
		}
	}
}

// Close closes the files. No method may be called afterwards.
func (s *spool) Close() error {
	errs := []error{s.syncSegments()}
	if s.file != nil {
		errs = append(errs, s.file.Close())
	}
	if s.reader != nil {
		errs = append(errs, s.reader.Close())
	}
	return errors.Join(append(errs, s.checkpoint.Sync(), s.checkpoint.Close())...)
}

// Bytes returns the size of all segments.
func (s *spool) Bytes() int64 { return s.size.Load() }

// Wake returns a channel that receives a value after records were appended.
func (s *spool) Wake() <-chan struct{} { return s.appended }
