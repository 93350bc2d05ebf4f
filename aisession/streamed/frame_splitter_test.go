package streamed

import (
	"bytes"
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
