package recording

import (
	"context"
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"
	"time"

	"trunkline/config/callrecording"
	"trunkline/internal/testservice/testdb"
	"trunkline/telephony/g711"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// onePolicy is every account's policy.
type onePolicy callrecording.Policy

func (p onePolicy) Policy(context.Context, string) (callrecording.Policy, error) {
	return callrecording.Policy(p), nil
}

func newLiveEnv(t testing.TB, mode callrecording.Mode) (*env, *Recorder) {
	t.Helper()
	h := newEnv(t, Settings{PauseKeys: "*7"}, testdb.SQLite(t))
	h.policies, h.liveDir = onePolicy{Mode: mode}, filepath.Join(t.TempDir(), "in-progress")
	return h, NewRecorder(h.Service, nil)
}

func pcmu() sip.NegotiatedMedia {
	return sip.NegotiatedMedia{
		Codecs:         []sip.NegotiatedCodec{{Codec: sip.PCMU(), SendType: 0, ReceiveType: 0}},
		TelephoneEvent: sip.NegotiatedCodec{Codec: sip.TelephoneEvent(8000), SendType: 101, ReceiveType: 101},
	}
}

// voice is a tone in packets of 20 ms of G.711 mu-law. Its samples are found again by their bytes.
type voice struct {
	hz        float64
	ssrc      uint32
	timestamp uint32
	n         int
}

func (v *voice) pcm(i int) int16 {
	return g711.ULaw().DecodeSample(g711.ULaw().EncodeSample(int16(8000 * math.Sin(2*math.Pi*v.hz*float64(i)/8000))))
}

func (v *voice) next() *rtp.Packet {
	payload := make([]byte, 160)
	for i := range payload {
		payload[i] = g711.ULaw().EncodeSample(int16(8000 * math.Sin(2*math.Pi*v.hz*float64(v.n*160+i)/8000)))
	}
	packet := &rtp.Packet{Timestamp: v.timestamp + uint32(v.n*160), SSRC: v.ssrc, Payload: payload}
	v.n++
	return packet
}

// loudness returns the mean amplitude of a channel in each 20 ms of a WAV file of two channels.
func loudness(wav []byte, channel int) (levels []int) {
	data := wav[44:]
	for from := 0; from+160*4 <= len(data); from += 160 * 4 {
		sum := 0
		for i := range 160 {
			sample := int16(binary.LittleEndian.Uint16(data[from+i*4+channel*2:]))
			sum += int(math.Abs(float64(sample)))
		}
		levels = append(levels, sum/160)
	}

	return levels
}

// setPresent moves the clock of a live recording: its present is that long after its start.
func (r *liveRecording) setPresent(d time.Duration) {
	r.mu.Lock()
	r.beganAt = time.Now().Add(-d)
	r.mu.Unlock()
}

// openLive opens the journal of a live recording.
func openLive(t testing.TB, live *liveRecording) *liveRecording {
	t.Helper()
	check(t, live.prepare())
	return live
}
