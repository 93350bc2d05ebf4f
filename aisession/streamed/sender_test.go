package streamed

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestASenderThatIsStuckDropsTheOldest(t *testing.T) {
	var written [][]byte
	stuck, began := make(chan struct{}), make(chan struct{}, 1)
	s := NewSender(func(frame []byte) error {
		select {
		case began <- struct{}{}:
		default:
		}

		<-stuck
		written = append(written, bytes.Clone(frame))
		return nil
	}, func() { t.Error("failed") })

	s.Put([]byte{0})
	<-began
	for i := range 200 {
		s.Put(append(s.Buffer(), byte(i+1)))
	}

	close(stuck)
	awaitEmpty(s)

	s.Close()
	s.Close()
	if len(written) < 50 || written[0][0] != 0 || written[1][0] != 151 || written[len(written)-1][0] < 199 {
		t.Errorf("%d frames were written", len(written))
	}
}

// awaitEmpty waits until the writer has taken all frames.
func awaitEmpty(s *Sender) {
	for s.queued() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// TestASenderThatIsStuckDropsAudioOnly: a client that misses a mark or a flush would be out of step.
func TestASenderThatIsStuckDropsAudioOnly(t *testing.T) {
	var written []byte
	stuck, began := make(chan struct{}), make(chan struct{}, 1)
	s := NewSender(func(frame []byte) error {
		select {
		case began <- struct{}{}:
		default:
		}

		<-stuck
		written = append(written, frame[0])
		return nil
	}, func() { t.Error("failed") })

	s.Put([]byte{'a'})
	<-began
	for _, message := range "FM" {
		s.PutControl([]byte{byte(message)})
		for range 2 * maxQueuedFrames {
			s.Put([]byte{'a'})
		}
	}

	s.Put([]byte{'z'})
	close(stuck)
	awaitEmpty(s)
	s.Close()

	want := "aFM" + strings.Repeat("a", maxQueuedFrames-3)
	if !strings.HasPrefix(string(written), want) { // the last may be queued when the writer ends
		t.Errorf("wrote %s, want %s", written, want)
	}
}

// TestControlMessagesAreBounded: a client that reads nothing does not take memory without end.
func TestControlMessagesAreBounded(t *testing.T) {
	s := NewSender(func([]byte) error { return errors.New("gone") }, func() {})
	for range 2 * maxQueuedMessages {
		s.PutControl([]byte{1})
		s.Put([]byte{2})
	}
	if n := s.queued(); n > maxQueuedMessages {
		t.Errorf("%d messages are queued", n)
	}
	s.Close()
}

func TestASenderThatFailsSaysSoOnce(t *testing.T) {
	failed := make(chan struct{})
	s := NewSender(func([]byte) error { return errors.New("gone") }, func() { close(failed) })
	s.Put([]byte{1})
	<-failed
	for range 200 {
		s.Put(nil) // still does not wait
	}
	s.Close()
}
