package embedded

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// slowSegment makes the first segment of the topic a pipe, whose reader waits. It returns a function that waits for a
// reader and returns the pipe's other end.
func (l *bareLog) slowSegment() (awaitReader func() *os.File) {
	l.t.Helper()
	path := filepath.Join(l.path(), segmentName(0))
	err := os.MkdirAll(l.path(), 0o755)
	if err == nil {
		err = syscall.Mkfifo(path, 0o600)
	}
	if err != nil {
		l.t.Fatal(err)
	}

	return func() *os.File {
		for {
			writer, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
			if err == nil {
				return writer
			}
			if !errors.Is(err, syscall.ENXIO) { // nobody reads yet
				l.t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// TestTheFirstRequestOfAPartitionDelaysNoOther: what is there is read first, up to a segment.
func TestTheFirstRequestOfAPartitionDelaysNoOther(t *testing.T) {
	l := newBareLog(t)
	awaitReader := l.slowSegment()
	first := make(chan error, 1)
	go func() {
		_, err := l.beginRequest([]partition{l.topic}, false)
		first <- err
	}()
	slow := awaitReader()

	other := make(chan error, 1)
	go func() {
		_, err := l.beginRequest([]partition{{"other", 0}}, false)
		other <- err
	}()

	select {
	case err := <-other:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("a request to another partition waits")
	}

	if err := errors.Join(slow.Close(), <-first); err != nil {
		t.Error(err)
	}
}

// TestWhatWasReadOfAPartitionIsNotUsedOnceAnotherRequestAppended: of two first requests, the slower one reads what the
// faster one has appended, which no round has synced.
func TestWhatWasReadOfAPartitionIsNotUsedOnceAnotherRequestAppended(t *testing.T) {
	l := newBareLog(t)
	awaitReader := l.slowSegment()
	type begun struct {
		number int64
		err    error
	}
	slower := make(chan begun, 1)
	go func() {
		number, err := l.beginRequest([]partition{l.topic}, false)
		slower <- begun{number, err}
	}()
	slow := awaitReader()

	if err := os.Remove(filepath.Join(l.path(), segmentName(0))); err != nil {
		t.Fatal(err)
	}
	finish := l.begin()
	l.append(0, 100)

	batch := oneRecord(100)
	binary.BigEndian.PutUint64(batch, 0)
	_, err := slow.Write(batch)
	if err := errors.Join(err, slow.Close()); err != nil {
		t.Fatal(err)
	}
	got := <-slower
	if got.err != nil {
		t.Fatal(got.err)
	}

	finish()
	if err := l.finishRequest(got.number, []partition{l.topic}); err != nil {
		t.Fatal(err)
	}
	l.expectDurable()
}
