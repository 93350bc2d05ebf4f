package embedded

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
)

// journal holds what was appended to the log's files since these were last synced, so that
// one write and one sync make the batches of all partitions durable. It has two files, which
// are used in turn: while one is filled, the log's files of which the other has bytes are
// synced. A file is overwritten in place, which spares the file system a commit of its own
// journal.
//
// A record says which bytes were written where. At start the records are written again, the
// older file first. That is safe whether a file of the log has their bytes or not: a record
// cuts the file at its position before it writes, and the last record of a file ends where
// the file did.
type journal struct {
	files [2]*os.File
	size  int64 // maximum of one file, in bytes
	fsync func(*os.File) error

	generation uint64 // of the records in the current file: that of the other file plus 1
	end        int64  // of the records in the current file
}

const (
	// A record is a header, the name of a file below the log's directory, and the bytes. The
	// header, little endian: CRC-32C of all that follows it, generation (8), position of the
	// bytes in the file (8), length of the name (4) and of the bytes (4).
	journalHeader = 28

	maxJournalBytes = 16 << 20 // of one file
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func journalName(i int) string { return fmt.Sprintf("journal.%d", i) }

// openJournal opens the journal of a directory for appending, without any records.
func openJournal(dir string, size int64, fsync func(*os.File) error) (*journal, error) {
	// Records that an earlier process left further on in a file have another generation.
	j := &journal{size: size, fsync: fsync, generation: 1 + rand.Uint64N(1<<62)}
	for i := range j.files {
		f, err := os.OpenFile(filepath.Join(dir, journalName(i)), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("opening the journal: %w", err), j.close())
		}
		j.files[i] = f
	}

	if err := j.clear(); err != nil {
		return nil, errors.Join(err, j.close())
	}

	return j, nil
}

// clear removes all records. The log's files must be synced.
func (j *journal) clear() error {
	for _, f := range j.files {
		if err := f.Truncate(0); err != nil {
			return fmt.Errorf("clearing the journal: %w", err)
		}
		if err := j.fsync(f); err != nil {
			return fmt.Errorf("clearing the journal: %w", err)
		}
	}

	j.generation++
	j.end = 0
	return nil
}

// switchFile continues with the other file, whose records are overwritten from now on. They are
// made invalid first: if only the first of them were left, a replay would cut a file of the
// log there, and not write what came after.
func (j *journal) switchFile() error {
	f := j.files[(j.generation+1)%2]
	_, err := f.WriteAt(make([]byte, journalHeader), 0)
	if err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}

	if err := j.fsync(f); err != nil {
		return fmt.Errorf("syncing the journal: %w", err)
	}

	j.generation++
	j.end = 0
	return nil
}

// isNearlyFull reports whether it is time to continue with the other file, if that is free.
func (j *journal) isNearlyFull() bool { return j.end > j.size/4*3 }

// fits reports whether the current file has room for bytes of records.
func (j *journal) fits(bytes int) bool { return j.end+int64(bytes) <= j.size }

// write appends records, which appendRecord made for this generation, and syncs them.
func (j *journal) write(records []byte) error {
	f := j.files[j.generation%2]
	_, err := f.WriteAt(records, j.end)
	if err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}

	if err := j.fsync(f); err != nil {
		return fmt.Errorf("syncing the journal: %w", err)
	}

	// After the sync: what failed is written over by the next records, if there are any.
	j.end += int64(len(records))
	return nil
}

func (j *journal) close() error {
	var errs []error
	for _, f := range j.files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// appendRecord appends a record of bytes that were written to a file at a position.
func appendRecord(to []byte, generation uint64, name string, position int64, content []byte) []byte {
	start := len(to)
	to = append(to, 0, 0, 0, 0)
	to = binary.LittleEndian.AppendUint64(to, generation)
	to = binary.LittleEndian.AppendUint64(to, uint64(position))
	to = binary.LittleEndian.AppendUint32(to, uint32(len(name)))
	to = binary.LittleEndian.AppendUint32(to, uint32(len(content)))
	to = append(append(to, name...), content...)
	binary.LittleEndian.PutUint32(to[start:], crc32.Checksum(to[start+4:], castagnoli))
	return to
}

// journalRecord is content that was written to a file at a position.
type journalRecord struct {
	generation uint64 // of the journal's file, when it was written
	name       string // of the file, below the log's directory
	position   int64  // bytes
	content    []byte
}

// parseRecord parses the record at the start of b and returns its size; ok is false if there
// is none, as where a crash came before the sync of it was done.
func parseRecord(b []byte) (r journalRecord, size int, ok bool) {
	if len(b) < journalHeader {
		return r, 0, false
	}

	name := uint64(binary.LittleEndian.Uint32(b[20:]))
	content := uint64(binary.LittleEndian.Uint32(b[24:]))
	if journalHeader+name+content > uint64(len(b)) {
		return r, 0, false
	}

	b = b[:journalHeader+name+content]
	if binary.LittleEndian.Uint32(b) != crc32.Checksum(b[4:], castagnoli) {
		return r, 0, false
	}

	r.generation = binary.LittleEndian.Uint64(b[4:])
	r.position = int64(binary.LittleEndian.Uint64(b[12:]))
	r.name = string(b[journalHeader : journalHeader+name])
	r.content = b[journalHeader+name:]

	return r, len(b), r.generation > 0 && r.position >= 0 && filepath.IsLocal(r.name)
}

// replayJournal writes what the journal in dir has to the log's files below logDir. Call
// it before these are opened, and sync them before the journal is cleared.
func replayJournal(dir, logDir string, log *slog.Logger) error {
	var files [][]byte
	for i := range (&journal{}).files {
		content, err := os.ReadFile(filepath.Join(dir, journalName(i)))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("reading the journal: %w", err)
		}
		files = append(files, content)
	}

	slices.SortFunc(files, func(a, b []byte) int {
		first, _, _ := parseRecord(a)
		second, _, _ := parseRecord(b)
		return cmp.Compare(first.generation, second.generation)
	})

	for _, content := range files {
		if err := replayRecords(content, logDir, log); err != nil {
			return fmt.Errorf("replaying the journal: %w", err)
		}
	}

	return nil
}

// replayRecords replays the records of the generation with which a journal's file begins. What
// follows is of an earlier one, or was not acknowledged.
func replayRecords(b []byte, logDir string, log *slog.Logger) error {
	first, _, _ := parseRecord(b)
	for {
		r, size, ok := parseRecord(b)
		if !ok || r.generation != first.generation {
			return nil
		}
		if err := r.replay(logDir, log); err != nil {
			return err
		}

		b = b[size:]
	}
}

// replay writes a record's bytes. A file that is missing although it had bytes before these
// was trimmed.
func (r *journalRecord) replay(logDir string, log *slog.Logger) error {
	path := filepath.Join(logDir, r.name)
	flags := os.O_RDWR
	if r.position == 0 {
		flags |= os.O_CREATE
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
	}

	f, err := os.OpenFile(path, flags, 0o644)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}

	size, err := f.Seek(0, io.SeekEnd)
	if err == nil && size < r.position { // nobody but a user does that
		log.Error("embedded broker: a file of the log is shorter than it was, its later records are lost",
			"path", path, "bytes", size, "bytes_before", r.position)
		return f.Close()
	}
	if err == nil {
		err = f.Truncate(r.position)
	}
	if err == nil {
		_, err = f.WriteAt(r.content, r.position)
	}

	return errors.Join(err, f.Close())
}
