package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// bareLog is a durability without kfake: the test appends what kfake would.
type bareLog struct {
	*durability
	t     *testing.T
	dir   string
	topic partition

	syncing sync.Mutex        // guards the following fields: several files are synced at a time
	synced  []string          // paths of files and directories of the log, in order
	files   map[string][]byte // what synced files had, by path
}

func newBareLog(t *testing.T) *bareLog {
	t.Helper()
	dir := t.TempDir()
	l := &bareLog{t: t, dir: dir, topic: partition{"t", 0}, files: map[string][]byte{},
		durability: newDurability(filepath.Join(dir, "log"), newMetrics(nil), quiet())}
	if err := l.recover(dir, 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.durability.dir, "topics.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}

	l.fsync = func(f *os.File) error {
		l.syncing.Lock()
		defer l.syncing.Unlock()

		l.synced = append(l.synced, f.Name())
		info, err := f.Stat()
		if err != nil || info.IsDir() {
			return err
		}

		l.files[f.Name()], err = os.ReadFile(f.Name())
		return err
	}
	t.Cleanup(func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
	})

	return l
}

func (l *bareLog) path() string { return newPartitionLog(l.durability.dir, l.topic).path() }

// begin registers a request and returns what ends it.
func (l *bareLog) begin() (finish func()) {
	l.t.Helper()
	number, err := l.beginRequest([]partition{l.topic}, false)
	if err != nil {
		l.t.Fatal(err)
	}

	return func() {
		l.t.Helper()
		if err := l.finishRequest(number, []partition{l.topic}); err != nil {
			l.t.Fatal(err)
		}
	}
}

// append appends a batch of one record to the partition's first segment.
func (l *bareLog) append(offset int64, size int) {
	l.t.Helper()
	batch := oneRecord(size)
	binary.BigEndian.PutUint64(batch, uint64(offset))
	entry := indexEntry(batch)

	err := os.MkdirAll(l.path(), 0o755)
	for name, content := range map[string][]byte{segmentName(0): batch, indexName(0): entry[:]} {
		f, openErr := os.OpenFile(filepath.Join(l.path(), name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if openErr != nil {
			l.t.Fatal(openErr)
		}
		_, writeErr := f.Write(content)
		err = errors.Join(err, writeErr, f.Close())
	}

	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *bareLog) deleteTopic() {
	l.t.Helper()
	if err := os.RemoveAll(l.path()); err != nil {
		l.t.Fatal(err)
	}
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.synced = nil
}

// expectDurable fails the test unless what was synced, with the journal, has what the files of the
// partition have.
func (l *bareLog) expectDurable() {
	l.t.Helper()
	left := l.t.TempDir()
	for path, content := range l.files {
		to := filepath.Join(left, newPartitionLog("", l.topic).path(), filepath.Base(path))
		err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, content, 0o644))
		if err != nil {
			l.t.Fatal(err)
		}
	}

	if err := replayJournal(l.dir, left, quiet()); err != nil {
		l.t.Fatal(err)
	}

	for _, name := range []string{segmentName(0), indexName(0)} {
		want, err := os.ReadFile(filepath.Join(l.path(), name))
		if err != nil {
			l.t.Fatal(err)
		}

		got, _ := os.ReadFile(filepath.Join(left, newPartitionLog("", l.topic).path(), name))
		if !bytes.Equal(got, want) {
			l.t.Errorf("a loss of power leaves %d bytes of %s, or others, want %d", len(got), name, len(want))
		}
	}
}
