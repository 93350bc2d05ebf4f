package streamed

import (
	"bytes"
	"errors"
	"testing"

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
	in := NewFrameSplitter(s, audio.Format{Encoding: audio.PCM16, Rate: 8000})
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

func TestALongPieceIsCutToFrames(t *testing.T) {
	s := &fakeSession{}
	NewFrameSplitter(s, audio.Format{Encoding: audio.PCM16, Rate: 16000}).Write(make([]byte, 6400))
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
	for len(o.queue) > 0 {
	}
	o.Close()
	o.Close()
	if len(written) < 50 || written[0][0] != 0 || written[1][0] != 151 || written[len(written)-1][0] < 199 {
		t.Errorf("%d frames were written", len(written))
	}
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
