package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// partitionLog is the directory of one partition: segment files, each named by its
// first offset, and an index file per segment, which has an entry of fixed size, with the
// leader epoch, for each batch. kfake appends a batch to its segment and then its entry to
// the index; where it cannot write both, it cuts the segment again. So a batch with an
// entry is final.
type partitionLog struct {
	dir  string // kfake's data directory
	name string // of the partition's directory below it

	// The partition's directory, open from when it was first seen until forget, so that another one in its
	// place has another inode; nil: not seen yet.
	folder *os.File

	// What was read for the journal; used by one round at a time.
	base        int64 // of the segment that is read; -1: none yet
	segment     *os.File
	index       *os.File
	segmentRead int64 // bytes
	indexRead   int64 // bytes
	next        int64 // offset after the last batch that was read

	newestBase int64 // base offset of the newest synced segment; -1: none
}

func newPartitionLog(dir string, p partition) *partitionLog {
	name := filepath.Join(partitionsName, fmt.Sprintf("%s-%d", url.PathEscape(p.topic), p.number))
	return &partitionLog{dir: dir, name: name, base: -1, newestBase: -1}
}

// openPartitionLog returns the log of a partition to which nothing is being appended, and of
// which everything is synced.
func openPartitionLog(dir string, p partition) *partitionLog {
	l := newPartitionLog(dir, p)
	folder, err := os.Open(l.path())
	if err != nil { // it comes again when a round reads it, which then begins at the beginning
		return l
	}

	l.folder = folder
	bases, _ := segmentBases(l.path()) // likewise
	if len(bases) > 0 {
		l.newestBase = bases[len(bases)-1]
	}

	// The newest segment may be just begun, without a batch or an index.
	for _, base := range slices.Backward(bases) {
		content, _ := os.ReadFile(filepath.Join(l.path(), segmentName(base)))
		info, err := os.Stat(filepath.Join(l.path(), indexName(base)))
		batches := parseBatches(content, len(content))
		if batches.count > 0 && err == nil {
			l.base, l.segmentRead, l.indexRead, l.next = base, int64(batches.size), info.Size(), batches.next
			return l
		}
	}

	return l
}

func (l *partitionLog) path() string { return filepath.Join(l.dir, l.name) }

const (
	partitionsName = "partitions" // of the directory of partitions below kfake's
	indexEntrySize = 15
)

// appendRecords appends to the records of the journal what was appended to the partition's
// files since the last call.
func (l *partitionLog) appendRecords(records []byte, generation uint64, buffers *readBuffers) ([]byte, error) {
	for {
		opened, err := l.openSegment()
		if err != nil || !opened {
			return records, err
		}

		records, err = l.appendSegment(records, generation, buffers)
		if err != nil {
			return records, fmt.Errorf("reading %s: %w", l.segment.Name(), err)
		}

		if l.next == l.base || !l.hasNextSegment() {
			return records, nil
		}

		l.startSegment(l.next)
	}
}

// openSegment opens the files of the segment that is read; false: nothing final is there, as in
// a segment that is just begun, or of a topic that was deleted.
func (l *partitionLog) openSegment() (bool, error) {
	if l.segment != nil {
		return true, nil
	}
	if l.base >= 0 && !l.hasSegment(l.base) && l.hasSegment(l.next) { // it was trimmed
		l.startSegment(l.next)
	}

	if l.base < 0 || !l.hasSegment(l.base) {
		l.restart()
		bases, err := segmentBases(l.path())
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return false, err
		}

		if len(bases) == 0 {
			return false, nil
		}

		l.startSegment(bases[0])
	}

	var err error
	if l.folder == nil {
		l.folder, err = os.Open(l.path())
	}
	if err == nil {
		l.segment, err = os.Open(filepath.Join(l.path(), segmentName(l.base)))
	}
	if err == nil {
		l.index, err = os.Open(filepath.Join(l.path(), indexName(l.base)))
	}
	if err != nil {
		l.close()
	}
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}

	// What was opened may be another topic's, of which nothing is read from here on: the next round begins anew.
	if err == nil && l.isDeleted() {
		l.close()
		return false, nil
	}

	return err == nil, err
}

// close closes the files, but not the directory, until they are read again.
func (l *partitionLog) close() {
	for _, f := range []*os.File{l.segment, l.index} {
		if f != nil {
			f.Close() // only read
		}
	}
	l.segment, l.index = nil, nil
}

// forget closes the directory, too, when the topic was deleted or the broker ends. A checkpoint may still
// sync the files.
func (l *partitionLog) forget() {
	l.close()
	if l.folder != nil {
		l.folder.Close() // only read
	}
	l.folder = nil
}

// startSegment continues with the beginning of a segment.
func (l *partitionLog) startSegment(base int64) {
	l.close()
	l.base, l.segmentRead, l.indexRead, l.next = base, 0, 0, base
}

// restart continues with the beginning of the log, whichever segment that is.
func (l *partitionLog) restart() { l.startSegment(-1) }

func (l *partitionLog) hasSegment(base int64) bool {
	_, err := os.Lstat(filepath.Join(l.path(), segmentName(base)))
	return err == nil
}

// hasNextSegment reports whether the segment after the open one exists. It is asked in every round,
// so it spares the kernel the way from the root.
func (l *partitionLog) hasNextSegment() bool {
	return unix.Faccessat(int(l.folder.Fd()), segmentName(l.next), 0, 0) == nil
}

// isDeleted reports whether the directory is no longer that of its name: the topic was deleted, and
// perhaps created again. kfake removes a partition's directory at no other time.
func (l *partitionLog) isDeleted() bool {
	if l.folder == nil {
		return false
	}

	var open, named syscall.Stat_t
	err := syscall.Fstat(int(l.folder.Fd()), &open)
	if err == nil {
		err = syscall.Lstat(l.folder.Name(), &named)
	}

	return err != nil || open.Dev != named.Dev || open.Ino != named.Ino
}

// appendSegment appends records of the batches that were appended to the open segment, and of
// their entries in the index.
func (l *partitionLog) appendSegment(records []byte, generation uint64, buffers *readBuffers) ([]byte, error) {
	entries, err := readFrom(l.index, l.indexRead, &buffers.index)
	if err != nil {
		return records, err
	}

	count := len(entries) / indexEntrySize
	if count == 0 {
		return records, nil
	}

	// kfake may be in the middle of writing an entry: it is left for the next round.
	entries = entries[:count*indexEntrySize]
	// After the index: a batch is written before its entry, so the segment has all batches that are counted.
	content, err := readFrom(l.segment, l.segmentRead, &buffers.segment)
	if err != nil {
		return records, err
	}

	batches := parseBatches(content, count)
	if batches.count < count {
		return records, fmt.Errorf("it has %d batches of %d in its index: %w", batches.count, count,
			io.ErrUnexpectedEOF)
	}

	name := strconv.FormatInt(l.base, 10)
	records = appendRecord(records, generation, filepath.Join(l.name, name+segmentSuffix), l.segmentRead,
		content[:batches.size])
	records = appendRecord(records, generation, filepath.Join(l.name, name+indexSuffix), l.indexRead, entries)
	l.segmentRead += int64(batches.size)
	l.indexRead += int64(len(entries))
	l.next = batches.next

	return records, nil
}

// readBuffers are reused from one round to the next.
type readBuffers struct{ index, segment []byte }

const minReadBufferBytes = 4 << 10

// readFrom reads a file from a position to its present end. What it returns is valid until the
// buffer is used again.
func readFrom(f *os.File, position int64, buffer *[]byte) ([]byte, error) {
	if len(*buffer) == 0 {
		*buffer = make([]byte, minReadBufferBytes)
	}

	read := 0
	for {
		n, err := syscall.Pread(int(f.Fd()), (*buffer)[read:], position+int64(read))
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "pread", Path: f.Name(), Err: err}
		}

		read += n
		if read < len(*buffer) {
			return (*buffer)[:read], nil
		}

		// A full buffer does not show the end of the file: doubled, and read on.
		*buffer = append(*buffer, make([]byte, len(*buffer))...)
	}
}

// batchRun is a run of whole batches.
type batchRun struct {
	count int
	size  int   // bytes
	next  int64 // offset after the last one
}

// parseBatches parses the heads of at most most whole batches at the beginning of b.
func parseBatches(b []byte, most int) (run batchRun) {
	const head, minSize = 12, 61 // first offset and length; all but the records
	for run.count < most && len(b)-run.size >= minSize {
		batch := b[run.size:]
		size := head + int64(int32(binary.BigEndian.Uint32(batch[8:])))
		if size < minSize || size > int64(len(batch)) {
			return run
		}

		run.next = int64(binary.BigEndian.Uint64(batch)) + int64(binary.BigEndian.Uint32(batch[23:])) + 1
		run.size += int(size)
		run.count++
	}

	return run
}

// sync syncs the segments that may have changed since the last call, and the directories if
// there is a new segment. Rounds may read meanwhile.
func (l *partitionLog) sync(d *durability) error {
	bases, err := segmentBases(l.path())
	if err != nil && !errors.Is(err, os.ErrNotExist) { // no files, as for a deleted topic
		return err
	}

	newestBase := int64(-1)
	if len(bases) > 0 {
		newestBase = bases[len(bases)-1]
	}

	for _, base := range bases {
		if base < l.newestBase {
			continue
		}

		for _, name := range []string{segmentName(base), indexName(base)} {
			err := d.syncFile(filepath.Join(l.path(), name))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}

	// A new file survives a crash only if its directory is synced, and that of a new partition likewise.
	if newestBase != l.newestBase && newestBase >= 0 {
		if err := d.syncFile(l.path()); err != nil {
			return err
		}
		if err := d.syncFile(filepath.Dir(l.path())); err != nil {
			return err
		}
	}

	// At the end only: after an error the next call syncs these segments again.
	l.newestBase = newestBase
	return nil
}

const (
	segmentSuffix = ".dat"
	indexSuffix   = ".idx"
)

func segmentName(base int64) string { return strconv.FormatInt(base, 10) + segmentSuffix }
func indexName(base int64) string   { return strconv.FormatInt(base, 10) + indexSuffix }

// segmentBases lists the base offsets of the segments in a partition's
// directory, in order.
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

	slices.Sort(bases)
	return bases, nil
}
