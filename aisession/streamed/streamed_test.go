package streamed

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"trunkline/telephony/audio"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type fakeSession struct {
	timestamps []uint32
	audio      []byte
}

func (s *fakeSession) ReceiveAudio(timestamp uint32, payload []byte) {
	s.timestamps = append(s.timestamps, timestamp)
	if int(timestamp)*2 != len(s.audio) {
		panic("timestamps do not count samples")
	}
	s.audio = append(s.audio, payload...)
}

func TestPiecesOfAnySizeAreSamples(t *testing.T) {
	want := make([]byte, 4001)
	for i := range want {
		want[i] = byte(i * 7)
	}

	s := &fakeSession{}
	in := NewFrameSplitter(s, audio.Format{Encoding: audio.PCM16, Rate: 8000}, 1)
	for rest, n := want, 1; len(rest) > 0; n = n*5%701 + 1 {
		n = min(n, len(rest))
		in.Write(rest[:n])
		rest = rest[n:]
	}

	in.Write(nil)
	if !bytes.Equal(s.audio, want[:4000]) {
		t.Error("samples were lost or turned")
	}
}

func TestPiecesOfTwoChannelsStayTogether(t *testing.T) {
	s := &pairs{t: t}
	in := NewFrameSplitter(s, audio.Format{Encoding: audio.PCM16, Rate: 8000}, 2)

	stream := bytes.Repeat([]byte{1, 1, 2, 2}, 1000)
	for n := 1; len(stream) > 0; n = n*5%701 + 1 {
		n = min(n, len(stream))
		in.Write(stream[:n])
		stream = stream[n:]
	}

	if s.samples != 1000 {
		t.Errorf("%d of 1000 samples", s.samples)
	}
}

// pairs is a session that counts the samples of two channels.
type pairs struct {
	t       *testing.T
	samples int
}

func (p *pairs) ReceiveAudio(timestamp uint32, payload []byte) {
	if int(timestamp) != p.samples || !bytes.Equal(payload, bytes.Repeat([]byte{1, 1, 2, 2}, len(payload)/4)) {
		p.t.Errorf("%d bytes at %d after %d samples are not whole", len(payload), timestamp, p.samples)
	}
	p.samples += len(payload) / 4
}

func TestALongPieceIsCutToFrames(t *testing.T) {
	s := &fakeSession{}
	NewFrameSplitter(s, audio.Format{Encoding: audio.PCM16, Rate: 16000}, 1).Write(make([]byte, 6400))
	if len(s.timestamps) != 10 {
		t.Errorf("%d frames of 200 ms", len(s.timestamps))
	}
}

func TestAnOutletThatIsStuckDropsTheOldest(t *testing.T) {
	var written [][]byte
	stuck, began := make(chan struct{}), make(chan struct{}, 1)
	o := NewSender(func(frame []byte) error {
		select {
		case began <- struct{}{}:
		default:
		}

		<-stuck
		written = append(written, bytes.Clone(frame))
		return nil
	}, func() { t.Error("failed") })

	o.Put([]byte{0})
	<-began
	for i := range 200 {
		o.Put(append(o.Buffer(), byte(i+1)))
	}

	close(stuck)
	awaitEmpty(o)

	o.Close()
	o.Close()
	if len(written) < 50 || written[0][0] != 0 || written[1][0] != 151 || written[len(written)-1][0] < 199 {
		t.Errorf("%d frames were written", len(written))
	}
}

// awaitEmpty waits until the writer has taken all frames.
func awaitEmpty(o *Sender) {
	for o.queued() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// TestAnOutletThatIsStuckDropsAudioOnly: a client that misses a mark or a flush would be out of step.
func TestAnOutletThatIsStuckDropsAudioOnly(t *testing.T) {
	var written []byte
	stuck, began := make(chan struct{}), make(chan struct{}, 1)
	o := NewSender(func(frame []byte) error {
		select {
		case began <- struct{}{}:
		default:
		}

		<-stuck
		written = append(written, frame[0])
		return nil
	}, func() { t.Error("failed") })

	o.Put([]byte{'a'})
	<-began
	for _, message := range "FM" {
		o.PutControl([]byte{byte(message)})
		for range 2 * maxQueuedFrames {
			o.Put([]byte{'a'})
		}
	}

	o.Put([]byte{'z'})
	close(stuck)
	awaitEmpty(o)
	o.Close()

	want := "aFM" + strings.Repeat("a", maxQueuedFrames-3)
	if !strings.HasPrefix(string(written), want) { // the last may be queued when the writer ends
		t.Errorf("wrote %s, want %s", written, want)
	}
}

// TestControlMessagesAreBounded: a client that reads nothing does not take memory without end.
func TestControlMessagesAreBounded(t *testing.T) {
	o := NewSender(func([]byte) error { return errors.New("gone") }, func() {})
	for range 2 * maxQueuedMessages {
		o.PutControl([]byte{1})
		o.Put([]byte{2})
	}
	if n := o.queued(); n > maxQueuedMessages {
		t.Errorf("%d messages are queued", n)
	}
	o.Close()
}

func TestAnOutletThatFailsSaysSoOnce(t *testing.T) {
	failed := make(chan struct{})
	o := NewSender(func([]byte) error { return errors.New("gone") }, func() { close(failed) })
	o.Put([]byte{1})
	<-failed
	for range 200 {
		o.Put(nil) // still does not wait
	}
	o.Close()
}
